"""Results with a row for each edge: those of local and of remote edges as the rows of one set."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.attributes import NAME
from ....dialects.inter.builder import Builder
from ....dialects.inter.types import rows
from ....dialects.signature import Attributes, array_of, results, return_of
from ..verify_sets import verify_sets
from .sets import Cut


def join_results(func: FuncOp, cut: Cut) -> None:
    """Makes one result of those that `partition` makes of one on edges, with the name that it had:
    the rows of local edges, then those of remote ones, chunk by chunk."""
    env, end = verify_sets(func), return_of(func)
    b = Builder(env, InsertPoint.before(end))
    unions: dict[tuple[str, ...], str] = {p: s for s, p in cut.parts.items() if len(p) > 1}
    joined: dict[tuple[str, ...], SSAValue] = {}
    out: list[tuple[SSAValue, Attributes]] = []
    waiting: list[SSAValue] = []
    first = ""
    for name, v, attrs in results(func):
        first = first if waiting else name
        waiting.append(v)
        parts = tuple(rows(x).dom.set for x in waiting)
        if any(found[: len(parts)] == parts and found != parts for found in unions):
            continue
        if parts in unions:
            if parts not in joined:
                joined[parts] = b.union(*parts, name=f"{unions[parts]}_result")
            v = b.stack(joined[parts], *waiting)
            attrs = {**attrs, NAME: StringAttr(first.removesuffix("_local"))}
        out.append((v, attrs))
        waiting.clear()
    if len(out) < len(end.operands):
        Rewriter.replace_op(end, ReturnOp(*[v for v, _ in out]), [])
        func.res_attrs = array_of(a for _, a in out)
        func.update_function_type()
