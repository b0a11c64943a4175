"""`dgl.function`: message and reduce functions by name, for `update_all` and its kin.

They are read by their attributes (`binary_op`, `lhs`, `lhs_field`, ..), which are those of DGL's
own, so DGL's objects serve as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OPERATIONS = ("add", "sub", "mul", "div", "dot")
REDUCERS = ("max", "min", "sum", "mean")


class TargetCode:
    """What an operand is a feature of."""

    SRC = 0
    DST = 1
    EDGE = 2

    CODE2STR = {0: "u", 1: "v", 2: "e"}


class BuiltinFunction:
    """A message or reduce function that is known by name."""


@dataclass(frozen=True)
class CopyMessageFunction(BuiltinFunction):
    """The message is a feature of the source (`u`) or of the edge (`e`)."""

    target: int
    in_field: str
    out_field: str

    @property
    def name(self) -> str:
        return f"copy_{TargetCode.CODE2STR[self.target]}"


@dataclass(frozen=True)
class BinaryMessageFunction(BuiltinFunction):
    """The message is an operation on two features, broadcast against each other."""

    binary_op: str
    lhs: int
    rhs: int
    lhs_field: str
    rhs_field: str
    out_field: str

    @property
    def name(self) -> str:
        lhs, rhs = TargetCode.CODE2STR[self.lhs], TargetCode.CODE2STR[self.rhs]
        return f"{lhs}_{self.binary_op}_{rhs}"


@dataclass(frozen=True)
class SimpleReduceFunction(BuiltinFunction):
    """What a node keeps of the messages that lead to it."""

    name: str
    msg_field: str
    out_field: str


def copy_u(u: str, out: str) -> CopyMessageFunction:
    """The message `out` is feature `u` of the source."""
    return CopyMessageFunction(TargetCode.SRC, u, out)


def copy_e(e: str, out: str) -> CopyMessageFunction:
    """The message `out` is feature `e` of the edge."""
    return CopyMessageFunction(TargetCode.EDGE, e, out)


def is_message(function: Any) -> bool:
    """Whether this is a message function that is known by name, ours or DGL's."""
    return hasattr(function, "binary_op") or (
        hasattr(function, "in_field") and hasattr(function, "target")
    )


def is_reduce(function: Any) -> bool:
    """Whether this is a reduce function that is known by name, ours or DGL's."""
    return hasattr(function, "msg_field")


def _binary(lhs: int, operation: str, rhs: int) -> Callable[[str, str, str], Any]:
    def make(lhs_field: str, rhs_field: str, out: str) -> BinaryMessageFunction:
        return BinaryMessageFunction(operation, lhs, rhs, lhs_field, rhs_field, out)

    left, right = TargetCode.CODE2STR[lhs], TargetCode.CODE2STR[rhs]
    make.__name__ = make.__qualname__ = f"{left}_{operation}_{right}"
    make.__doc__ = f"The message `out` is `{left}[lhs_field] {operation} {right}[rhs_field]`."
    return make


def _reducer(reducer: str) -> Callable[[str, str], Any]:
    def make(msg: str, out: str) -> SimpleReduceFunction:
        return SimpleReduceFunction(reducer, msg, out)

    make.__name__ = make.__qualname__ = reducer
    make.__doc__ = f"The feature `out` is the {reducer} of messages `msg`, zero where none leads."
    return make


for _lhs in TargetCode.CODE2STR:
    for _rhs in TargetCode.CODE2STR:
        for _operation in OPERATIONS:
            if _lhs != _rhs:
                _made = _binary(_lhs, _operation, _rhs)
                globals()[_made.__name__] = _made
for _name in REDUCERS:
    globals()[_name] = _reducer(_name)
