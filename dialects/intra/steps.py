"""Steps: what a phase does, one after the other.

A phase is a list of ops at host level. Some name what the caller supplies (bindings.py) and may
stand anywhere above their use; the others are its steps, and run in their order. Nests are one
kind. A pass that moves, merges or removes steps, or lets buffers share memory, asks of all of them
what this interface says, and looks into those of its own kind only.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..assembly import OpClass
from ..attributes import PHASE
from .bindings import BindingOp, MemoryOp


class Step(Operation, metaclass=OpClass):
    """An op of a phase that reads and writes buffers.

    A step that goes on after its op, as a message that is being sent, ends at another step: that
    one reads and writes what is in use until then.
    """

    @abc.abstractmethod
    def reads(self) -> set[SSAValue]:
        """The buffers that are read: allocations, inputs and outputs, not views of them."""

    @abc.abstractmethod
    def writes(self) -> set[SSAValue]:
        """The buffers that are written."""

    @property
    @abc.abstractmethod
    def may_move(self) -> bool:
        """Whether the step may be done earlier or later, as far as the buffers allow it. Past one
        that may not, nothing moves."""


BESIDE_STEPS = (BindingOp, MemoryOp, ReturnOp)
"""What a phase has beside its steps."""


def phases(module: ModuleOp) -> list[FuncOp]:
    """The functions of a module that lower-to-intra made, in order."""
    funcs = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return [f for f in funcs if PHASE in f.attributes and f.body.blocks]


def steps(func: FuncOp) -> list[Step]:
    """The steps of a phase, in order.

    Raises:
        VerifyException: an op of the phase is no step and names nothing that the caller supplies.
    """
    found: list[Step] = []
    op = func.body.block.first_op
    while op is not None:  # passes ask often, of phases with thousands of bindings
        if isinstance(op, Step):
            found.append(op)
        elif not isinstance(op, BESIDE_STEPS):
            raise VerifyException(
                f"{op.name} in @{func.sym_name.data} is no step: what it reads and writes is not "
                "known (dialects/intra/steps.py)"
            )
        op = op.next_op
    return found


def steps_after(step: Step) -> Iterator[Step]:
    """The steps of a phase behind one of them."""
    op = step.next_op
    while op is not None:
        if isinstance(op, Step):
            yield op
        op = op.next_op


def number_of(step: Step) -> int:
    """How many steps of its phase are before one."""
    assert step.parent is not None
    before = itertools.takewhile(lambda op: op is not step, step.parent.ops)
    return sum(isinstance(op, Step) for op in before)


def sections(order: list[Step]) -> dict[Step, int]:
    """Of each step how many before it may not move: what is computed in one section stays there."""
    out: dict[Step, int] = {}
    fixed = 0
    for step in order:
        out[step] = fixed
        fixed += not step.may_move
    return out
