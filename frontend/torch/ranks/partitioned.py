"""An imported program as one for ranks: partitioned, with bindings for the rows of one rank."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ....dialects.inter.types import UNIT, RowsType, SetType
from ....dialects.inter.types import rows as rows_of
from ....dialects.signature import arguments, results
from ....passes.analysis.costs import note_size
from ....passes.driver.pipelines import before_partition, passes_of
from ....passes.driver.runner import PassRunner
from ....passes.inter.global_rows import GlobalRowsPass
from ....passes.inter.partition import PartitionPass
from ....passes.inter.partitioning.edge_results import join_results
from ....passes.inter.partitioning.sets import Cut
from ....passes.inter.verify_sets import verify_sets
from ..importer.binding import FromTensor, Imported, MapBinding, RowsBinding, SetBinding, Size
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
class Lookups:
    """The placeholder that holds the rows of a table, and the maps by which nodes read these."""

    table: int
    maps: tuple[MapBinding, ...]


@dataclass(frozen=True)
class Ranked:
    """A partitioned program.

    Attributes:
        imported: with its rows as they are bound on a rank; the sets are those of before.
        cut: what each set of before is.
        edges: for each set of edges the placeholder that holds their ends.
        totals: the placeholders and dimensions (None: numbers) that count rows of such a set, by
            its name.
        lookups: the tables that nodes read by an index, by the sets of their rows.
        row_sets: the set of before of each argument of rows, by its name of before.
        alike: the names of results that are the same on all ranks, numbers and rows of sets that
            are not cut.
    """

    imported: Imported
    cut: Cut
    edges: Mapping[str, int]
    totals: Mapping[tuple[int, int | None], str]
    lookups: Mapping[str, Lookups]
    row_sets: Mapping[str, str]
    alike: frozenset[str]


def partitioned(imported: Imported, training: bool) -> Ranked:
    """The program over the rows of ranks of one whose `cut` says which placeholders have such rows
    (the module is changed).

    Raises:
        Unsupported: edges lead to nodes that are cut and are not known themselves, a table is used
            otherwise than by its rows, or an op has no form over parts.
    """
    passes = passes_of(",".join(before_partition(training)))
    PassRunner(Context(), passes, verify_each=False, made_by="the importer").run(imported.module)
    func = imported.function
    sets = {name: t.dom.set for name, t in _rows(func).items()}
    edges, nodes = edges_bound(imported), dict.fromkeys(nodes_bound(imported))
    lookups = _lookups(imported, sets, nodes)
    env = verify_sets(func)
    types = [a.type for a in func.body.block.args if isinstance(a.type, SetType)]
    far = tuple(f"{s.name}.{k}" for s in imported.sets for k in _far_ends(imported, s))
    try:
        cut = Cut.of(env, types, nodes, imported.chunks, far)
        _check_known(imported, cut, edges)
        for p in (PartitionPass(tuple(nodes), imported.chunks, far), GlobalRowsPass()):
            p.apply(Context(), imported.module)
    except PassFailedException as error:
        raise Unsupported(
            None, f"over several ranks {str(error).removeprefix('partition: ')}"
        ) from error
    join_results(imported.function, cut)
    _note_crossing(imported, cut)
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
        lookups,
        sets,
        frozenset(name for name, v, _ in results(imported.function) if _is_whole(v, cut)),
    )


def _is_whole(v: SSAValue, cut: Cut) -> bool:
    """Whether all ranks have all rows of a value."""
    s = rows_of(v).dom.set
    return s == UNIT or (cut.parts.get(s) == (s,) and not cut.is_cut(s))


def _note_crossing(imported: Imported, cut: Cut) -> None:
    """Tells passes how large local and remote edges are, and messages."""
    for s, sizes in imported.crossing.items():
        nodes = cut.nodes.get(s)
        parts = [cut.parts[s]] if nodes is None else [nodes.sent, nodes.ghost]
        for names in parts:
            for name, size in zip(names, sizes, strict=True):
                note_size(imported.function, name, size)


def _rows(func: FuncOp) -> dict[str, RowsType]:
    """The types of the rows that are arguments, by name."""
    return {name: a.type for name, a, _ in arguments(func) if isinstance(a.type, RowsType)}


def edges_bound(imported: Imported) -> dict[str, int]:
    """The placeholders that hold the ends of sets of edges which are cut."""
    return {
        s.name: m.placeholder
        for s in imported.sets
        for m in s.maps
        if imported.cut.get(m.placeholder) == "index"
    }


def _far_ends(imported: Imported, s: SetBinding) -> list[str]:
    """The maps of edges that are the first row of their ends: the second one says where they
    lie."""
    ends = (m for m in s.maps if imported.cut.get(m.placeholder) == "index")
    return [m.label for m in ends if m.index == (0,)]


def nodes_bound(imported: Imported) -> Sequence[str]:
    """The sets of nodes which are cut: what such edges lead to, and what rows are known to be of
    nodes. Where nodes are counted otherwise than by a tensor of theirs, all ranks have all."""
    sets = {name: t.dom.set for name, t in _rows(imported.function).items()}
    given = {s.name for s in imported.sets if not _follows(s.size)}
    ends = [
        m.codomain
        for s in imported.sets
        for m in s.maps
        if imported.cut.get(m.placeholder) == "index" and m.codomain in given
    ]
    return [
        *ends,
        *(
            sets[r.name]
            for r in imported.rows
            if isinstance(r.source, FromTensor)
            and imported.cut.get(r.source.placeholder) in ("nodes", "table")
            and sets.get(r.name, UNIT) != UNIT
        ),
        *(
            s.name
            for s in imported.sets
            if any(imported.cut.get(m.placeholder) == "nodes" for m in s.maps)
        ),
    ]


def _follows(size: Size) -> bool:
    """Whether a number follows from sizes of tensors, and is none of them: of those of the whole
    graph it is the same on all ranks."""
    return size.place is None and all(dim is not None for _, _, dim in size.names)


def _lookups(
    imported: Imported, sets: Mapping[str, str], nodes: Collection[str]
) -> dict[str, Lookups]:
    """The tables that nodes read by an index, by the sets of their rows.

    Raises:
        Unsupported: a table is used in another way than by its rows.
    """
    tables, own = dict[str, int](), set[str]()
    for r in imported.rows:
        if isinstance(r.source, FromTensor) and (kind := imported.cut.get(r.source.placeholder)):
            s = sets.get(r.name, UNIT)
            if kind == "table" and s == UNIT:
                raise Unsupported(None, f"{r.name} is used as a whole")
            if kind == "table":
                tables[s] = r.source.placeholder
            elif kind == "nodes":
                own.add(s)
    maps = [(s.name, m, imported.cut.get(m.placeholder)) for s in imported.sets for m in s.maps]
    own |= {m.codomain for _, m, kind in maps if kind == "index"}
    out: dict[str, Lookups] = {}
    for s, m, kind in maps:
        if m.codomain in tables and kind != "index":
            by = argument_name(imported.placeholders[m.placeholder])
            if m.codomain in own:
                reason = "and its rows are read as those of nodes as well"
                raise Unsupported(None, f"a table is read by the index {by}, {reason}")
            if s not in nodes:
                reason = "which has not a number for each node"
                raise Unsupported(None, f"a table is read by the index {by}, {reason}")
            before = out[m.codomain].maps if m.codomain in out else ()
            out[m.codomain] = Lookups(tables[m.codomain], (*before, m))
    return out


def _check_known(imported: Imported, cut: Cut, edges: Mapping[str, int]) -> None:
    for s in imported.sets:
        if len(cut.parts.get(s.name, ())) > 1 and s.name not in edges:
            raise Unsupported(
                None,
                f"the edges in {_speaks_of(imported, s)} lead to nodes of several ranks: which are "
                "whose is known of the edges that gnnc.distribute returns alone, and of those that "
                "a call draws by dropout_edge or negative_sampling",
            )
        if s.name in edges and not cut.is_cut(s.name):
            raise Unsupported(
                None,
                f"the edges in {_speaks_of(imported, s)} lead to nodes of which no tensor has a "
                "row each: how many there are is to be the size of one of gnnc.distribute",
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
) -> dict[tuple[int, int | None], str]:
    out: dict[tuple[int, int | None], str] = {}
    for r in imported.rows:
        s = sets.get(r.name, UNIT)
        if isinstance(r.source, FromTensor) and r.source.row_axis is not None:
            if s in cut.nodes or s in edges:
                out[r.source.placeholder, r.source.row_axis] = s
    for s in imported.sets:
        if s.size.place is not None and (s.name in edges or s.name in cut.nodes):
            out[s.size.place] = s.name
        if s.name in edges or s.name in cut.nodes:
            out |= {(m.placeholder, m.row_axis): s.name for m in s.maps}
    return out


def with_whole_sizes(
    args: Sequence[Any], totals: Mapping[tuple[int, int | None], int]
) -> Sequence[Any]:
    """Stand-ins for arguments, whose shapes count the rows of all ranks."""
    out = list(args)
    for (position, dim), n in totals.items():
        if dim is None:
            out[position] = n
            continue
        shape = list(out[position].shape)
        shape[dim] = n
        out[position] = Shaped(tuple(shape))
    return out
