"""Runs a list of passes on a module: verifies between them, and tells watchers what happens.

`gnn-opt` and the compile pipeline both run passes through `PassRunner`, so that dumps, times,
checks of the meaning and reproducers work the same in both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.exceptions import (
    PassFailedException,
    ShrinkException,
    VerifyException,
)

from ...dialects.verify import verify_module
from ..inter.verify_sets import verify_sets

DUMP_VARIABLE = "GNNC_DUMP"
"""The environment variable that names the folder for `Dump`."""
VERIFY_VARIABLE = "GNNC_VERIFY_EACH"
"""The environment variable that has `gnnc.compile` verify after every pass, unless it is empty."""


class PassCrash(Exception):
    """A pass raised what no pass should raise, or left a module that does not verify.

    This is a bug in gnnc, not in the program it was given. `reproducer` is the file that shows it,
    None where none was asked for.
    """

    def __init__(self, message: str, pass_name: str, reproducer: Path | None):
        super().__init__(message)
        self.pass_name = pass_name
        self.reproducer = reproducer


class ChangedMeaning(PassCrash):
    """A pass made the program compute something else."""


class Watcher:
    """Is told about each step of a run; the methods do nothing until a subclass says otherwise."""

    def begin(self, module: ModuleOp) -> None:
        """`module` is what the first pass will get."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """`pass_` is about to change `module`."""

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """`pass_` has changed `module`, and the result verifies."""


@dataclass
class PassRunner:
    """Applies `passes` to a module in order.

    Raises what a pass reports (`PassFailedException`: the program cannot be compiled) as it is,
    with a note that names the pass, and anything else as `PassCrash`: an op that a pass makes and
    that does not verify is the pass's fault, not the program's. With `reproducer_folder` a
    crash leaves a file there: the module before that pass and, as a `RUN:` line, the passes that
    were left. `verify` switches the verification before the first and after every pass; without
    `verify_each` only what goes in and what comes out is verified, which is faster, and a run that
    fails is done again with every step verified, to find the pass that is to blame. `made_by` says
    what of gnnc made the module, if no user wrote it: then one that does not verify is a crash too.
    """

    ctx: Context
    passes: Sequence[ModulePass]
    watchers: Sequence[Watcher] = ()
    verify: bool = True
    verify_each: bool = True
    reproducer_folder: Path | None = None
    made_by: str | None = None

    def run(self, module: ModuleOp) -> None:
        """Changes `module` in place."""
        if self.verify:
            self._verify_input(module)
        again = self.verify and not self.verify_each
        # One copy for all passes: the module before a crash is computed again from it.
        original = module.clone() if again or self.reproducer_folder is not None else None
        for watcher in self.watchers:
            watcher.begin(module)
        try:
            self._run(module, None if again else original)
        except Exception:
            if again and original is not None:
                replace(self, watchers=(), verify_each=True).run(original)
            raise

    def _verify_input(self, module: ModuleOp) -> None:
        try:
            verify(module)
        except (VerifyException, PassFailedException) as error:
            if self.made_by is None:
                raise
            what = f"{self.made_by} made a module that does not verify: {error}"
            raise PassCrash(what, self.made_by, None) from error

    def _run(self, module: ModuleOp, original: ModuleOp | None) -> None:
        for i, pass_ in enumerate(self.passes):
            for watcher in self.watchers:
                watcher.before(pass_, module)
            self._apply(i, module, original)
            for watcher in self.watchers:
                watcher.after(pass_, module)

    def _apply(self, i: int, module: ModuleOp, original: ModuleOp | None) -> None:
        pass_ = self.passes[i]
        try:
            pass_.apply(self.ctx, module)
        except ShrinkException:
            raise
        except PassFailedException as error:
            error.add_note(f"reported by pass `{pass_.name}`")
            raise
        except Exception as error:
            what = f"pass `{pass_.name}` raised {type(error).__name__}: {error}"
            raise self._crash(what, i, original) from error
        if self.verify and (self.verify_each or i == len(self.passes) - 1):
            try:
                verify(module)
            except (VerifyException, PassFailedException) as error:
                what = f"pass `{pass_.name}` left a module that does not verify: {error}"
                raise self._crash(what, i, original) from error

    def _crash(self, what: str, i: int, original: ModuleOp | None) -> PassCrash:
        name = self.passes[i].name
        if original is None or self.reproducer_folder is None:
            return PassCrash(what, name, None)
        for earlier in self.passes[:i]:
            earlier.apply(self.ctx, original)
        path = write_reproducer(self.reproducer_folder, what, self.passes[i:], original)
        return PassCrash(f"{what}\nto see it again: gnn-opt {path}", name, path)


def verify(module: ModuleOp) -> None:
    """What ops and types can check, and what needs the sets of a whole function (verify-sets)."""
    verify_module(module)
    for func in module.body.ops:
        if isinstance(func, FuncOp) and func.body.blocks:
            verify_sets(func)


def module_text(module: ModuleOp) -> str:
    """`module` as gnn-opt reads it."""
    out = StringIO()
    Printer(stream=out).print_op(module)
    return out.getvalue() + "\n"


def pipeline_text(passes: Sequence[ModulePass]) -> str:
    """`passes` in the syntax of `gnn-opt -p`."""
    return ",".join(str(pass_.spec()) for pass_ in passes)


REPRODUCER_HEADER = "// gnnc reproducer: "
PIPELINE_LINE = '// RUN: gnn-opt %s -p "'


def write_reproducer(
    folder: Path, what: str, passes: Sequence[ModulePass], module: ModuleOp
) -> Path:
    """Writes `module` and how to run `passes` on it to a new file in `folder`; returns its path."""
    pipeline = pipeline_text(passes).replace('"', '\\"')
    first_line = what.splitlines()[0] if what else ""
    text = f'{REPRODUCER_HEADER}{first_line}\n{PIPELINE_LINE}{pipeline}"\n\n{module_text(module)}'
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"gnnc-reproducer-{sha256(text.encode()).hexdigest()[:12]}.mlir"
    path.write_text(text)
    return path


def reproducer_pipeline(text: str) -> str | None:
    """The passes that a reproducer file's header asks for; None where `text` is no reproducer."""
    if not text.startswith(REPRODUCER_HEADER):
        return None
    for line in text.splitlines():
        if line.startswith(PIPELINE_LINE):
            return line.removeprefix(PIPELINE_LINE).removesuffix('"').replace('\\"', '"')
    return None


class Dump(Watcher):
    """Writes the module after every pass to `folder`/NN-<pass>.mlir, the input as 00-input.mlir."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._count = 0
        folder.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def from_environment(label: str) -> list[Dump]:
        """A list of one `Dump` into a new folder $GNNC_DUMP/<label>-<number>, or an empty list."""
        root = os.environ.get(DUMP_VARIABLE)
        return [Dump(_new_folder(Path(root), label))] if root else []

    def write(self, name: str, text: str) -> Path:
        """Puts one more numbered file into the folder (generated source, say); returns its path."""
        path = self.folder / f"{self._count:02}-{name}"
        path.write_text(text)
        self._count += 1
        return path

    def begin(self, module: ModuleOp) -> None:
        self.write("input.mlir", module_text(module))

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        self.write(f"{pass_.name}.mlir", module_text(module))


def _new_folder(root: Path, label: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        folder = root / f"{label}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:  # another compilation, perhaps of another process, has this number
            number += 1
        else:
            return folder


@dataclass
class Times(Watcher):
    """Measures each pass in seconds, without the verification after it and the other watchers."""

    seconds: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _start: float = 0.0

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._start = time.perf_counter()

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        self.seconds.append((pass_.name, time.perf_counter() - self._start))

    def report(self, output: IO[str]) -> None:
        """Prints one line a pass, and the sum."""
        for name, seconds in [*self.seconds, ("total", sum(s for _, s in self.seconds))]:
            print(f"{seconds * 1e3:10.2f} ms  {name}", file=output)
