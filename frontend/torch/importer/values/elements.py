"""Element types of rows, and what the IR takes: a rule that asks for more is refused there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .....dialects.pointwise import POINTWISE
from ..errors import NoRule

Elem = Literal["f32", "f64", "i32", "i64", "i1"]
FLOATS = ("f32", "f64")
INTEGERS = ("i32", "i64")

_TAKES = {
    "contract": "float",
    "dropout": "float",
    "softmax": "float",
    "reduce": "number",
    "row_reduce": "number",
}
"""What ops take that do not take rows of every type, as the records of pointwise functions say
it."""

_ELEMS: dict[str, tuple[str, ...]] = {
    "float": FLOATS,
    "integer": INTEGERS,
    "number": FLOATS + INTEGERS,
    "bool": ("i1",),
}


def refuse_untaken(
    op: str, elems: Sequence[Elem], shape: Sequence[int], attrs: Mapping[str, Any]
) -> None:
    """Raises NoRule where the IR has no such rows, or no such op on rows of these types."""
    if 0 in shape and op != "const":  # one that is joined to others adds nothing
        raise NoRule("a tensor with a dimension of size 0")
    name = attrs["name"] if op == "pointwise" else op
    kind = POINTWISE[name].operands if op == "pointwise" else _TAKES.get(op, "any")
    taken = _ELEMS.get(kind)
    asked = elems if op in ("pointwise", "contract") else elems[:1]  # others read integers besides
    if taken is not None and not set(taken).issuperset(asked):
        raise NoRule(f"{name} of {', '.join(dict.fromkeys(elems))} values")
