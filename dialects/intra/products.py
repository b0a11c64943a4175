"""Products that printers block over rows: a row times a matrix, and sums of outer products."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from .arithmetic import letter_sizes, need_floats
from .memory import need_single_row, need_writable
from .syntax import IntraOp, buffer_dims, need, row_dims

MATMUL = re.compile(r"^(l?b?k),([bkf]+)->(l?b?f)$")
OUTER = re.compile(r"^(l?b?k),(l?b?f)->([bkf]+)$")


@irdl_op_definition
class MatmulOp(IntraOp):
    """`intra.matmul %x, %W {spec = "k,kf->f"}`: a row times a matrix of the unit domain.

    `%x` is a row (l, b, k) and the result (l, b, f), `%W` a single row over the letters b, k, f in
    any order; l (rows of the same matrix) and b (one matrix each) may be absent.
    """

    name = "intra.matmul"
    x = operand_def()
    weight = operand_def(MemRefType)
    spec = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    def sizes(self) -> dict[str, int]:
        """Extent of each letter; absent l and b count 1."""
        x, w = self.spec.data.split("->")[0].split(",")
        n = letter_sizes([(x, row_dims(self.x.type)), (w, buffer_dims(self.weight))])
        return {"l": 1, "b": 1, **n}

    def verify_(self) -> None:
        found = MATMUL.match(self.spec.data)
        x, w, y = found.groups() if found else ("", "", "")
        batch = "b" if "b" in x else ""
        good = sorted(w) == sorted(f"{batch}kf") and y == x[:-1] + "f"
        need(good, f"spec {self.spec.data!r} is not [l][b]k,{{[b]kf in any order}}->[l][b]f")
        n = self.sizes()
        want, have = tuple(n[c] for c in y), row_dims(self.result.type)
        need(have == want, f"the result is a row of shape {want}, not {have}")
        need_floats([self.x.type, self.weight.type, self.result.type])
        need_single_row(self.weight, "the matrix of a product")


@irdl_op_definition
class OuterOp(IntraOp):
    """`intra.outer %a, %b, %sum {spec = "lbk,lbf->bkf"}`: outer products summed over all rows.

    `%a` is (l, b, k), `%b` (l, b, f); row 0 of the output holds b, k, f in any order, the sum over
    l too. Partial sums of row chunks are added in order.
    """

    name = "intra.outer"
    a = operand_def()
    b = operand_def()
    buffer = operand_def(MemRefType)
    spec = prop_def(StringAttr)

    def sizes(self) -> dict[str, int]:
        """Extent of each letter; absent l and b count 1."""
        a, b = self.spec.data.split("->")[0].split(",")
        n = letter_sizes([(a, row_dims(self.a.type)), (b, row_dims(self.b.type))])
        return {"l": 1, "b": 1, **n}

    def verify_(self) -> None:
        found = OUTER.match(self.spec.data)
        a, b, out = found.groups() if found else ("", "", "")
        batch = "b" if "b" in a else ""
        good = b == a[:-1] + "f" and sorted(out) == sorted(f"{batch}kf")
        need(good, f"spec {self.spec.data!r} is not [l][b]k,[l][b]f->{{[b]kf in any order}}")
        n = self.sizes()
        want, have = tuple(n[c] for c in out), buffer_dims(self.buffer)
        need(have == want, f"the sum is a row of shape {want}, not {have}")
        need_floats([self.a.type, self.b.type, self.buffer.type])
        need_writable(self.buffer)
        need_single_row(self.buffer, "a sum of outer products")
