"""An imported program as one for ranks: partitioned, with bindings for the rows of one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.func import FuncOp

from ....dialects.inter.types import UNIT, RowsType, SetType
from ....dialects.signature import arguments
from ....passes.driver.pipelines import BEFORE_PARTITION, passes_of
from ....passes.driver.runner import PassRunner
from ....passes.inter.global_rows import GlobalRowsPass
from ....passes.inter.partition import PartitionPass
from ....passes.inter.partitioning.edge_results import join_results
from ....passes.inter.partitioning.sets import Cut
from ....passes.inter.verify_sets import verify_sets
from ..importer.binding import FromTensor, Imported, RowsBinding, SetBinding
from ..importer.emit.arguments import argument_name
from ..importer.errors import Unsupported
from .cut_tensors import Shaped


@dataclass(frozen=True)
class OfEdges(FromTensor):
    """Rows of a placeholder for edges: of the local ones, which are part 0, or of the remote ones
    of a chunk. `index` is the placeholder that holds the ends of these edges."""

    index: int
    part: int


@dataclass(frozen=True)
class WholeNumbers:
    """The number of each row of a set in the whole graph."""

    set: str


@dataclass(frozen=True)
class Ranked:
    """A partitioned program.

    Attributes:
        imported: with its rows as they are bound on a rank; the sets are those of before.
        cut: what each set of before is.
        edges: for each set of edges the placeholder that holds their ends.
        totals: the placeholders and dimensions that count rows of such a set, by its name.
        row_sets: the set of before of each argument of rows, by its name of before.
    """

    imported: Imported
    cut: Cut
    edges: Mapping[str, int]
    totals: Mapping[tuple[int, int], str]
    row_sets: Mapping[str, str]


def partitioned(imported: Imported) -> Ranked:
    """The program over the rows of ranks of one whose `cut` says which placeholders have such rows
    (the module is changed).

    Raises:
        Unsupported: edges lead to nodes that are cut and are not known themselves.
        PassFailedException: an op has no form over parts.
    """
    PassRunner(Context(), passes_of(",".join(BEFORE_PARTITION)), verify_each=False).run(
        imported.module
    )
    func = imported.function
    sets = {name: t.dom.set for name, t in _rows(func).items()}
    edges, nodes = _edges(imported), dict.fromkeys(_nodes(imported, sets))
    env = verify_sets(func)
    types = [a.type for a in func.body.block.args if isinstance(a.type, SetType)]
    cut = Cut.of(env, types, nodes, imported.chunks)
    _check_known(imported, cut, edges)
    for p in (PartitionPass(tuple(nodes), imported.chunks), GlobalRowsPass()):
        p.apply(Context(), imported.module)
    join_results(imported.function, cut)
    rows = [new for r in imported.rows for new in _on_parts(r, sets.get(r.name, UNIT), cut, edges)]
    known = {r.name for r in rows}
    for name in _rows(imported.function):
        if name not in known:
            source = WholeNumbers(name.removesuffix("_rows"))
            rows.append(RowsBinding(name, source, (), "i64", False))
    return Ranked(
        replace(imported, rows=tuple(rows)),
        cut,
        edges,
        _totals(imported, sets, edges, cut),
        sets,
    )


def _rows(func: FuncOp) -> dict[str, RowsType]:
    """The types of the rows that are arguments, by name."""
    return {name: a.type for name, a, _ in arguments(func) if isinstance(a.type, RowsType)}


def _edges(imported: Imported) -> dict[str, int]:
    """The placeholders that hold the ends of sets of edges which are cut."""
    return {
        s.name: m.placeholder
        for s in imported.sets
        for m in s.maps
        if imported.cut.get(m.placeholder) == "index"
    }


def _nodes(imported: Imported, sets: Mapping[str, str]) -> Sequence[str]:
    """The sets of nodes which are cut: what such edges lead to, and what rows are known to be of
    nodes."""
    ends = [
        m.codomain
        for s in imported.sets
        for m in s.maps
        if imported.cut.get(m.placeholder) == "index"
    ]
    return [
        *ends,
        *(
            sets[r.name]
            for r in imported.rows
            if isinstance(r.source, FromTensor)
            and imported.cut.get(r.source.placeholder) == "nodes"
            and sets.get(r.name, UNIT) != UNIT
        ),
    ]


def _check_known(imported: Imported, cut: Cut, edges: Mapping[str, int]) -> None:
    for s in imported.sets:
        if len(cut.parts.get(s.name, ())) > 1 and s.name not in edges:
            raise Unsupported(
                None,
                f"the edges in {_speaks_of(imported, s)} lead to nodes of several ranks: which are "
                "whose is known of the edges that gnnc.distribute returns alone",
            )


def _speaks_of(imported: Imported, s: SetBinding) -> str:
    names = (argument_name(imported.placeholders[m.placeholder]) for m in s.maps)
    return ", ".join(dict.fromkeys(names))


def _on_parts(r: RowsBinding, s: str, cut: Cut, edges: Mapping[str, int]) -> list[RowsBinding]:
    """An argument as those of the parts of its set, as `partition` names them."""
    parts = cut.parts.get(s, (s,))
    if len(parts) == 1:
        return [r]
    source = r.source
    assert isinstance(source, FromTensor)
    return [
        replace(
            r,
            name=f"{r.name}_{cut.kind(part)}",
            source=OfEdges(source.placeholder, source.row_axis, edges[s], i),
        )
        for i, part in enumerate(parts)
    ]


def _totals(
    imported: Imported, sets: Mapping[str, str], edges: Mapping[str, int], cut: Cut
) -> dict[tuple[int, int], str]:
    out: dict[tuple[int, int], str] = {}
    for r in imported.rows:
        s = sets.get(r.name, UNIT)
        if isinstance(r.source, FromTensor) and r.source.row_axis is not None:
            if s in cut.nodes or s in edges:
                out[r.source.placeholder, r.source.row_axis] = s
    for s in imported.sets:
        if s.name in edges:
            out |= {(m.placeholder, m.row_axis): s.name for m in s.maps}
    return out


def with_whole_sizes(args: Sequence[Any], totals: Mapping[tuple[int, int], int]) -> Sequence[Any]:
    """Stand-ins for arguments, whose shapes count the rows of all ranks."""
    out = list(args)
    for (position, dim), n in totals.items():
        shape = list(out[position].shape)
        shape[dim] = n
        out[position] = Shaped(tuple(shape))
    return out
