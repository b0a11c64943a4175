"""From a target's record (passes/targets) to its printer (codegen): what prints a lowered module.

gnn-opt lists targets without loading one, so imports wait until something is printed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import IO, TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.target import Target as TextTarget

from ..passes.targets import DEFAULT, TARGETS, Target

if TYPE_CHECKING:
    from ..codegen.common.host import Printed

TARGET_VARIABLE = "GNNC_TARGET"
"""Names the target of programs whose options name none."""


def default_target() -> str:
    """``GNNC_TARGET``, else ``openmp``."""
    return os.environ.get(TARGET_VARIABLE) or DEFAULT


def printed(module: ModuleOp, target: Target) -> Printed:
    """A lowered module as text of a target, with the interfaces of its phases.

    Raises:
        PassFailedException: the target has no such step, or cannot print what a step does.
    """
    from ..dialects.intra.steps import phases, steps

    for func in phases(module):
        for step in steps(func):
            if step.name not in target.steps:
                raise PassFailedException(
                    f"{step.name} in @{func.sym_name.data}: the target {target.name} has no such "
                    "step"
                )
    return import_module(target.printer).print_module(module)


def get_all_targets() -> dict[str, Callable[[], type[TextTarget]]]:
    """Target name -> factory of the class that xDSL's driver prints with: kernels, if there are
    any, without the functions that all of them have at their head, then the functions of phases."""
    return {name: partial(_text_target, target) for name, target in TARGETS.items()}


def _text_target(target: Target) -> type[TextTarget]:
    @dataclass(frozen=True)
    class Text(TextTarget):
        name = target.name

        def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
            text = printed(module, target)
            output.write("\n".join(filter(None, [text.device, text.source])))

    Text.__doc__ = f"Print the lowered module as {target.about}."
    return Text
