"""Numbers that a nest's function is given.

The layers of a deep model are the same but for a few numbers: how strong its mapping is, which
dropout it draws. With these as parameters they share one function, and the C compiler, which takes
most of the time, sees it once.
"""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects.intra import rows
from ..common.scalars import const_value, ctype_of, number

_USUAL = frozenset((0.0, 0.5, 1.0, 2.0))
"""Numbers, of either sign, that hardly ever are what layers differ by: they stay in the text, where
the C compiler can make use of them."""


class Numbers:
    """The floats of a nest and the sites of its dropouts: by what they are in, the names that its
    function has for them.

    Attributes:
        parameters: pairs of type and name, in the order of the ops.
        given: what a call gives for each name.
    """

    def __init__(self, nest: rows.TraverseOp) -> None:
        self.parameters: list[tuple[str, str]] = []
        self.given: dict[str, str] = {}
        self._names: dict[Operation, str] = {}
        for op in nest.walk():
            if isinstance(op, rows.DropoutOp):
                self._add(op, "const uint32_t ", str(op.site.value.data))
            elif isinstance(op, rows.ConstOp) and (c := ctype_of(op.result)).suffix != "i":
                value = float(const_value(op))
                if abs(value) not in _USUAL and abs(value) < float("inf"):
                    self._add(op, f"const {c.name} ", number(value, c))

    def _add(self, op: Operation, kind: str, text: str) -> None:
        name = f"number{len(self.parameters)}"
        self._names[op] = name
        self.parameters.append((kind, name))
        self.given[name] = text

    def const(self, op: rows.ConstOp) -> str:
        """The C expression of the number that fills a row."""
        return self._names.get(op) or number(const_value(op), ctype_of(op.result))

    def site(self, op: rows.DropoutOp) -> str:
        """The C expression of a dropout's site."""
        return self._names[op]
