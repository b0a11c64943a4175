"""A watcher that interprets the module before and after every pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import InterpretationError

from ...dialects.meaning.check import MeaningChanged, same_meaning
from .runner import ChangedMeaning, Watcher, write_reproducer


class CheckMeaning(Watcher):
    """Raises ChangedMeaning when a pass changes what a function computes on random multigraphs.

    `reproducer_folder` is as in PassRunner. Operations without a NumPy meaning cannot be checked;
    `skipped` is told about each pass that has to do with them.
    """

    def __init__(self, skipped: Callable[[str], None], reproducer_folder: Path | None = None):
        self._skipped = skipped
        self._folder = reproducer_folder

    @override
    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._before = module.clone()

    @override
    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        try:
            same_meaning(self._before, module)
        except InterpretationError as error:
            self._skipped(f"pass `{pass_.name}` is not checked: {error}")
        except MeaningChanged as error:
            what = f"pass `{pass_.name}` changed the meaning of the module: {error}"
            path = None
            if self._folder is not None:
                path = write_reproducer(self._folder, what, [pass_], self._before)
                what += f"\nto see it again: gnn-opt --check-passes {path}"
            raise ChangedMeaning(what, pass_.name, path) from error
