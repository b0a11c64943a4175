"""Rewrites a function op by op: what each value is on the parts of its set."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr, UnitAttr, i1, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from ....dialects.attributes import GLOBAL_ROWS, NAME, STATS
from ....dialects.inter.base import StructureOp, ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.reduce import OverAlong
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.structure import (
    AttachOp,
    FilterOp,
    IntervalOp,
    LoopsOp,
    SizedOp,
    UnionOp,
)
from ....dialects.inter.types import (
    UNIT,
    Dom,
    RowsType,
    SetType,
    rows,
    set_name,
    set_type,
)
from ....dialects.inter.values import AtOp, IndexOp, IotaOp, PartOp, SizeOp, StackOp
from ....dialects.signature import (
    Attributes,
    arguments,
    array_of,
    body_ops,
    named_function,
    results,
)
from ...analysis.costs import Sizes, note_size
from ...analysis.places import placed
from .copies import follows, read_by_edges
from .first_rows import FirstRows, nodes_of
from .lookups import split_reads
from .made_maps import MadeMaps
from .made_results import MadeResults
from .places import keeps_loops
from .reductions import Reductions, added
from .sets import OWNER, Cut


def partitioned(
    func: FuncOp, env: SetEnv, cut: Sequence[str], chunks: int, far: Collection[str]
) -> FuncOp:
    """The function over the rows of ranks, which cross in so many chunks. Linear in ops.

    Raises:
        PassFailedException: an op has no form over parts.
    """
    types = [a.type for a in func.body.block.args if isinstance(a.type, SetType)]
    sets = frozenset(t.label for t in types)
    split_reads(func, env, cut)
    return _Program(func, env, sets, Cut.of(env, types, cut, chunks, far)).made()


@dataclass
class _Program:
    func: FuncOp
    old: SetEnv
    sets: frozenset[str]
    """Those that are arguments."""
    cut: Cut
    given: list[tuple[SSAValue | None, str, Attribute, Attributes]] = field(
        default_factory=list[tuple[SSAValue | None, str, Attribute, Attributes]]
    )
    """The new arguments: of which old one, name, type, attributes."""
    values: dict[SSAValue, dict[str, SSAValue]] = field(
        default_factory=dict[SSAValue, dict[str, SSAValue]]
    )
    """For each old value its rows, by the new set that they are of."""
    of_union: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Which operands of the old union the parts of a new one are."""
    joined: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """The unions of local and remote edges."""

    def __post_init__(self) -> None:
        self.far = read_by_edges(self.func, self.old, self.cut.nodes, self.cut.far)
        self.made_results = MadeResults(self.old, self.cut, self.of_union)
        self.first_rows = FirstRows(self.old)

    def made(self) -> FuncOp:
        self._arguments()
        ends: list[tuple[SSAValue, Attributes]] = []
        attributes = {k: v for k, v in self.func.attributes.items() if k != STATS}
        pairs = [(t, a) for _, _, t, a in self.given]
        out = named_function(self.func.sym_name.data, pairs, [], [], attributes)
        block = out.body.block
        for (old, name, t, _), new in zip(self.given, block.args, strict=True):
            new.name_hint = name
            if old is not None and isinstance(t, RowsType):
                self.values.setdefault(old, {})[t.dom.set] = new
        self.b = Builder(SetEnv.of(out), block, vanilla=True)
        self.reductions = Reductions(self.b, self.cut, self.old, self)
        self.made_maps = MadeMaps(
            self.b, self.old, self.cut, self.of_union, self.first_rows, self.on
        )
        for op in body_ops(self.func):
            with placed(op):
                self._op(op)
        for name, v, attrs in results(self.func):
            ends += self._results(name, v, attrs)
        self.b.point = InsertPoint.at_end(block)
        Rewriter.insert_op(ReturnOp(*[v for v, _ in ends]), self.b.point)
        result = FuncOp(
            self.func.sym_name.data,
            ([a.type for a in block.args], [v.type for v, _ in ends]),
            out.detach_region(0),
            arg_attrs=out.arg_attrs,
            res_attrs=array_of(a for _, a in ends),
        )
        result.attributes.update(attributes)
        self._note_sizes(result)
        return result

    def _note_sizes(self, func: FuncOp) -> None:
        """What is known of the sizes of sets, of those that are one set as before."""
        known = Sizes.of(self.func, self.old).stats
        for s, size in known.items():
            if len(parts := self.cut.parts.get(s, ())) == 1:
                note_size(func, parts[0], size)

    # ------------------------------------------------------------ the signature

    def _arguments(self) -> None:
        cut = self.cut
        for name in (cut.peers, cut.ranks):
            self._set(name)
        for n in cut.nodes.values():
            self._set(n.own)
            for c in n.crossings:
                self._set(c.sent)
                self._set(c.ghost)
        for parts in cut.lookups.values():
            for part in parts:
                self._set(part)
        numbered = [s for n in cut.nodes.values() for s in (n.own, *n.ghost)]
        for name, a, attrs in arguments(self.func):
            t = a.type
            if isinstance(t, SetType):
                if t.label not in cut.nodes:
                    for part in cut.parts[t.label]:
                        self._set(part, attrs if part == t.label else {})
                        if cut.is_cut(t.label):
                            numbered.append(part)
            elif isinstance(t, RowsType):
                self._rows(name, a, t, attrs)
        for name in numbered:
            t = RowsType.get(Dom(name), (), i64)
            self.given.append((None, f"{name}_rows", t, {GLOBAL_ROWS: UnitAttr()}))

    def _set(self, name: str, attrs: Attributes | None = None) -> None:
        self.given.append((None, name, self.cut.types[name], attrs or {}))

    def _rows(self, name: str, a: SSAValue, t: RowsType, attrs: Attributes) -> None:
        if t.dom.set == UNIT:
            self.given.append((a, name, t, attrs))
            return
        parts = self.cut.parts[t.dom.set]
        if t.dom.keys and parts != (t.dom.set,):
            raise PassFailedException(
                f"partition: the argument {name} lives on {t.dom}: the caller knows rows of "
                f"{t.dom.set} alone"
            )
        for part in parts:
            new = name if len(parts) == 1 else f"{name}_{self.cut.kind(part)}"
            own = attrs if NAME not in attrs else {**attrs, NAME: StringAttr(new)}
            self.given.append((a, new, t.renamed({t.dom.set: part}), own))

    def _results(
        self, name: str, v: SSAValue, attrs: Attributes
    ) -> list[tuple[SSAValue, Attributes]]:
        """A result with the name that the caller knows; of edges that are given as two."""
        t = rows(v)
        if t.dom.set == UNIT:
            return [(self.on(v, UNIT), {**attrs, NAME: StringAttr(name)})]
        if t.dom.keys:
            raise PassFailedException(
                f"partition: a result lives on {t.dom}: the caller knows rows of sets alone"
            )
        if t.dom.set not in self.sets:
            value = self.made_results.of(
                self.b, t.dom.set, lambda part: self.b.widen(self.on(v, part), Dom(part))
            )
            return [(value, {**attrs, NAME: StringAttr(name)})]
        parts = self.cut.parts[t.dom.set]
        out: list[tuple[SSAValue, Attributes]] = []
        for part in parts:
            value = self.b.widen(self.on(v, part), Dom(part))
            new = name if len(parts) == 1 else f"{name}_{self.cut.kind(part)}"
            out.append((value, {**attrs, NAME: StringAttr(new)}))
        return out

    # ------------------------------------------------------------ values on sets

    def on(self, v: SSAValue, name: str) -> SSAValue:
        """The rows of a value as a new set has them."""
        known = self.values[v]
        if UNIT in known:
            return known[UNIT]
        if name not in known:
            known[name] = self._brought(v, known, name)
        return known[name]

    def _brought(self, v: SSAValue, known: dict[str, SSAValue], name: str) -> SSAValue:
        if (n := self.cut.messages(name)) is not None and n.own in known:
            if isinstance(op := v.owner, ValueOp) and follows(v, self.far.__contains__):
                self._again(op, op.type.dom.set, name)
                return known[name]
            return self.b.move(self.b.at(n.sent, OWNER, known[n.own]), n.sent, n.ghost)
        for parts, union in self.joined.items():
            if name == union and all(p in known for p in parts):
                if self._has_groups(v, union):
                    self._made_on(v.owner, union)
                    return known[union]
                return self.b.stack(union, *(known[p] for p in parts))
            if name in parts and union in known:
                return self.b.part(parts.index(name), union, known[union])
        raise PassFailedException(
            f"partition: {v.type} is needed on {name}, and is on {', '.join(known)}"
        )

    def _has_groups(self, v: SSAValue, union: str) -> bool:
        """Whether a value has a row for each group of edges, a relation say, and can be computed
        for the groups of a union: stacked it would have a row an edge, which no op on groups reads.
        """
        keys, maps = rows(v).dom.keys, set_type(self.b.set(union)).map_dict()
        there = bool(keys) and all(k.split(".")[0] in maps for k in keys)
        return there and not isinstance(v.owner, OverAlong | StackOp | PartOp)

    def _made_on(self, op: Operation | Block, part: str) -> None:
        """The result of an op on one set more."""
        match op:
            case AtOp():
                self._at_rows(op, part, Dom(part, op.type.dom.keys))
            case ValueOp():
                self._again(op, op.type.dom.set, part)
            case _:
                raise TypeError(f"{op} is no op on rows")

    def join(self, s: str, op: ValueOp, keys: Sequence[str]) -> str:
        """The one set that has all rows of an old set, for an op that groups them by `keys`."""
        parts = self.cut.parts[s]
        if len(parts) == 1:
            return parts[0]
        if parts not in self.joined:
            self.joined[parts] = set_name(self.b.union(*parts, name=f"{s}_all"))
        maps = set_type(self.b.set(self.joined[parts])).map_dict()
        if any(k.split(".")[0] not in maps for k in keys):
            raise PassFailedException(
                f"partition: {op.name} groups rows of {s} by {', '.join(keys)}, those of one group "
                "may be on several ranks: only reductions along one map have parts"
            )
        return self.joined[parts]

    def put(self, v: SSAValue, new: SSAValue) -> None:
        new.name_hint = new.name_hint or v.name_hint
        self.values.setdefault(v, {})[rows(new).dom.set] = new

    def set_for(self, s: str, part: str, at: str) -> SSAValue:
        """The set operand `s` of an op over the set `at`, whose part is computed."""
        if s == at:
            return self.b.set(part)
        if self.cut.parts[s] != (s,):
            raise PassFailedException(f"partition: an op over {at} asks for the cut set {s}")
        return self.b.set(s)

    # ------------------------------------------------------------ ops

    def _op(self, op: Operation) -> None:
        cut = self.cut
        match op:
            case StructureOp():
                self._structure(op)
            case AtOp() | IndexOp() if (key := (set_name(op.set), op.path.data)) in cut.lookups:
                self.put(op.results[0], self._looked_up(op, cut.lookups[key]))
            case AtOp():
                self._at(op)
            case OverAlong():
                for v in self.reductions.made(op):
                    self.put(op.results[0], v)
            case StackOp():
                self._stack(op)
            case PartOp():
                self._part(op)
            case IotaOp() | IndexOp() | SizeOp() if said := self.first_rows.said(
                self.b, op, self.cut.parts
            ):
                for v in said:
                    self.put(op.results[0], v)
            case SizeOp():
                sizes = [self.b.size(p) for p in self.cut.parts[set_name(op.set)]]
                self.put(op.results[0], added(self.b, sizes))
            case ValueOp():
                self._by_row(op)
            case _:
                raise PassFailedException(f"partition: {op.name} has no form over parts")

    def _by_row(self, op: ValueOp) -> None:
        s = op.type.dom.set
        if s == UNIT:
            named = [set_name(x) for x in op.operands if isinstance(x.type, SetType)]
            at = named[0] if named else UNIT
            if at != UNIT and (self.cut.parts[at] != (at,) or self.cut.is_cut(at)):
                raise PassFailedException(f"partition: {op.name} of the cut set {at}")
            self._again(op, at, at)
            return
        keys = op.type.dom.keys
        parts = self.cut.parts[s] if len(keys) < 2 else (self.join(s, op, keys),)
        for part in parts:
            self._again(op, s, part)

    def _again(self, op: ValueOp, s: str, part: str) -> None:
        new = op.clone()
        new.operands = [
            self.set_for(set_name(x), part, s) if isinstance(x.type, SetType) else self.on(x, part)
            for x in op.operands
        ]
        t = op.type.renamed({s: part})
        known = [rows(x).dom for x in new.operands if isinstance(x.type, RowsType)]
        if t.dom.keys and Dom(part) in known:
            t = t.on(Dom(part))  # parts read rows edge by edge
        if t != op.type:
            Rewriter.replace_value_with_new_type(new.results[0], t)
        new.verify_()
        self.put(op.results[0], self.b.insert(new))

    def _at(self, op: AtOp) -> None:
        for part in self.cut.parts[set_name(op.set)]:
            self._at_rows(op, part)

    def _at_rows(self, op: AtOp, part: str, dom: Dom | None = None) -> None:
        x = self.on(op.x, self.b.env.codomain(part, op.path.data))
        otherwise = None if op.otherwise is None else self.on(op.otherwise, part)
        operands, path = [self.b.set(part), x, otherwise], {"path": op.path}
        self.put(op.results[0], self.b.emit(AtOp, operands, path, dom=dom))

    def _looked_up(self, op: AtOp | IndexOp, parts: Sequence[str]) -> SSAValue:
        """The rows that nodes read by a map, or their numbers: each is one of this rank, or of
        another one."""
        b, seen = self.b, list[SSAValue]()
        for part in parts:
            if isinstance(op, AtOp):
                x = b.at(part, "src", self.on(op.x, b.env.codomain(part, "src")))
            else:
                x = b.index(part, "src")
            seen.append(b.reduce("sum", x, part, ("dst",)))
        return added(b, seen)

    def _stack(self, op: StackOp) -> None:
        for union in self.cut.parts[set_name(op.set)]:
            names = set_type(self.b.set(union)).part_names
            xs = [op.xs[i] for i in self.of_union[union]]
            new = self.b.stack(union, *map(self.on, xs, names))
            self.put(op.results[0], new)

    def _part(self, op: PartOp) -> None:
        for union in self.cut.parts[set_name(op.set)]:
            for j, i in enumerate(self.of_union[union]):
                if i == op.index.data:
                    self.put(op.results[0], self.b.part(j, union, self.on(op.x, union)))

    # ------------------------------------------------------------ structure

    def _structure(self, op: StructureOp) -> None:
        label = op.set_type.label
        sources = [set_name(x) for x in op.operands if isinstance(x.type, SetType)]
        if isinstance(op, SizedOp) and (nodes := nodes_of(op, self.cut.nodes)) is not None:
            own, n = self.cut.nodes[nodes].own, self.on(op.n, UNIT)
            name = self._name(label, own)
            self._made(label, [self.first_rows.make(self.b, label, name, own, n)])
            return
        if all(self.cut.parts[s] == (s,) and not self.cut.is_cut(s) for s in sources):
            self._as_it_is(op, label)
            return
        match op:
            case FilterOp():
                parts = self.cut.parts[sources[0]]
                if keeps_loops(op):  # no remote edge is one
                    parts = tuple(p for p in parts if p not in self.cut.chunk)
                made = [self._filter(op, p, label) for p in parts]
                self.cut.loops.update(map(set_name, made) if keeps_loops(op) else ())
            case LoopsOp():
                local = self.cut.parts[sources[0]][0]
                remaining = op.remaining is not None
                made = [self.b.loops(local, remaining=remaining, name=self._name(label, local))]
            case UnionOp():
                made = self._union(sources, label)
            case AttachOp():
                made = [self._attach(op, p, label) for p in self.cut.parts[sources[0]]]
            case IntervalOp():
                raise PassFailedException(
                    f"partition: rows of {sources[0]} are taken by their places, as x[0] or x[1:] "
                    "does, where each rank has others: choose them by a mask with a row a node"
                )
            case _:
                raise PassFailedException(f"partition: {op.name} of the cut set {sources[0]}")
        self._made(label, made)

    def _made(self, label: str, made: Sequence[SSAValue]) -> None:
        """Notes the sets that an old one is."""
        for v in made:
            self.cut.types[set_name(v)] = set_type(v)
        self.cut.parts[label] = tuple(map(set_name, made))

    def _name(self, label: str, part: str) -> str:
        return self.b.fresh(f"{label}_{self.cut.kind(part)}")

    def _as_it_is(self, op: StructureOp, label: str) -> None:
        new = op.clone()
        new.operands = [
            self.b.set(set_name(x)) if isinstance(x.type, SetType) else self.on(x, rows(x).dom.set)
            for x in op.operands
        ]
        self.b.env.add(self.b.insert(new))
        self.cut.parts[label] = (label,)
        self.cut.types[label] = op.set_type

    def _filter(self, op: FilterOp, part: str, label: str) -> SSAValue:
        name = self._name(label, part)
        if op.mask is not None:
            made = self.b.filter(part, self.on(op.mask, part), name=name)
        elif part in self.cut.chunk:  # no remote edge is a loop
            made = self.b.filter(part, self.b.const(1, (), i1), name=name)
        else:
            made = self.b.filter(part, no_loops=True, name=name)
        self._in_chunk_of(part, made)
        return made

    def _in_chunk_of(self, part: str, made: SSAValue) -> None:
        """Notes that the rows of a set that was made lie where those of a part do."""
        if (chunk := self.cut.chunk.get(part)) is not None:
            self.cut.chunk[set_name(made)] = chunk

    def _union(self, sources: Sequence[str], label: str) -> list[SSAValue]:
        made: list[SSAValue] = []
        each = [(i, p) for i, s in enumerate(sources) for p in self.cut.parts[s]]
        there = {self.cut.chunk.get(p) for _, p in each}
        for chunk in sorted(there, key=lambda c: -1 if c is None else c):  # local edges come first
            pairs = [(i, p) for i, p in each if self.cut.chunk.get(p) == chunk]
            v = self.b.union(*(p for _, p in pairs), name=self._name(label, pairs[0][1]))
            self.of_union[set_name(v)] = [i for i, _ in pairs]
            made.append(v)
            self._in_chunk_of(pairs[0][1], v)
        return made

    def _attach(self, op: AttachOp, part: str, label: str) -> SSAValue:
        maps = self.made_maps.of(op, part, label)
        name = self._name(label, part)
        if not maps:
            made = self.b.filter(part, self.b.const(1, (), i1), name=name)
        else:
            pairs, checked = op.set_type.pair_keys, op.checked is not None
            made = self.b.attach(part, maps, pairs=pairs, name=name, checked=checked)
        self._in_chunk_of(part, made)
        return made
