"""Maps of nodes into nodes: a table of rows that nodes read by an index.

Of whom a row is that a node reads nothing says, so such a map becomes edges (`Cut.lookups`), and a
read by it a sum over the one edge of each node. Paths that have such a map in the middle are split
before, so that nodes alone read by it, and what reads these reads rows of nodes as ever.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from ....dialects.inter.builder import Builder
from ....dialects.inter.reduce import OverAlong
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.types import rows, set_name
from ....dialects.inter.values import AtOp, IndexOp
from ....dialects.signature import body_ops
from ...analysis.places import placed

PARENT = "parent"


def split_reads(func: FuncOp, env: SetEnv, nodes: Collection[str]) -> None:
    """Rewrites reads along paths with such maps; linear in ops.

    Raises:
        PassFailedException: an op does something else with such a map.
    """
    for op in body_ops(func):
        with placed(op):
            if isinstance(op, AtOp | IndexOp):
                _split(op, env, nodes)
            elif isinstance(op, OverAlong):
                for path in (*op.over.keys, *op.along_keys):
                    _refuse(op, op.over.set, path, env, nodes)


def _split(op: AtOp | IndexOp, env: SetEnv, nodes: Collection[str]) -> None:
    s, path = set_name(op.set), op.path.data
    found = _first(s, path, env, nodes)
    if found is None:
        return
    x = op.x if isinstance(op, AtOp) else None
    partial = isinstance(op, AtOp) and op.otherwise is not None
    if partial or op.type.dom.keys or (x is not None and rows(x).dom.keys):
        raise PassFailedException(
            f"partition: {s}[{path}] leads to rows that may be of another rank: all rows are read "
            "there, as they are"
        )
    _, name, label, _ = found
    if (s, path) != (name, label):
        b = Builder(env, InsertPoint.before(op), vanilla=True)
        Rewriter.replace_op(op, [], [_read(b, s, path, x, nodes)])


def _read(b: Builder, s: str, path: str, x: SSAValue | None, nodes: Collection[str]) -> SSAValue:
    """The rows of `x` that `s` reads along a path, or their numbers, one such map after the
    other."""

    def at(name: str, path: str) -> SSAValue:
        return b.index(name, path) if x is None else b.at(name, path, x)

    found = _first(s, path, b.env, nodes)
    if found is None:
        return at(s, path)
    before, name, label, rest = found
    if rest:
        x = _read(b, b.env.codomain(name, label), rest, x, nodes)
    x = at(name, label)
    return at(s, before) if before else x


def _refuse(op: OverAlong, s: str, path: str, env: SetEnv, nodes: Collection[str]) -> None:
    if (found := _first(s, path, env, nodes)) is not None:
        _, name, label, _ = found
        raise PassFailedException(
            f"partition: {op.name} of the map {label} of {name}, which leads to rows of "
            f"{env.codomain(name, label)} that may be of another rank: rows are read by it alone"
        )


def _first(
    s: str, path: str, env: SetEnv, nodes: Collection[str]
) -> tuple[str, str, str, str] | None:
    """The first map of nodes into nodes on a path: the path to these nodes, their set, the label,
    and the rest of the path."""
    before: list[str] = []
    labels = path.split(".")
    for i, label in enumerate(labels):
        end, up = env.codomain(s, label), _up(s, label, env, nodes)
        if up is not None:
            steps, name = up
            return ".".join([*before, *[PARENT] * steps]), name, label, ".".join(labels[i + 1 :])
        before.append(label)
        s = end
    return None


def _up(s: str, label: str, env: SetEnv, nodes: Collection[str]) -> tuple[int, str] | None:
    """How many sets above `s` the nodes are of which it has such a map, and their set."""
    steps, end = 0, env.codomain(s, label)
    while end in nodes:
        if s in nodes:
            return steps, s
        maps = env.info(s).maps
        if (
            label == PARENT
            or PARENT not in maps
            or label not in env.info(maps[PARENT].codomain).maps
        ):
            break
        s, steps = maps[PARENT].codomain, steps + 1
    return None
