"""Graphs cut among ranks: arguments and results of a partitioned program, all ranks together, and
those of the program that it was."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp

from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import RowsType, SetType
from gnnc.dialects.meaning import SetVal
from gnnc.dialects.signature import arguments, results
from gnnc.passes.driver.pipelines import passes_of
from gnnc.passes.inter.global_rows import GlobalRowsPass
from gnnc.passes.inter.partition import PartitionPass, nodes_of
from gnnc.passes.inter.partitioning.sets import Cut, Nodes

Index = np.ndarray[Any, Any]
PARTS = re.compile("_(local|remote[0-9]*)$")
CUT = (PartitionPass(), GlobalRowsPass())
IN_CHUNKS = (PartitionPass(chunks=3), GlobalRowsPass())
OPTIMIZED = tuple(
    passes_of(
        "unify-sets,canonicalize,cse,reorder-linear,canonicalize,cse,dce-sets,infer-domains,"
        "widen-domains,autodiff,canonicalize,cse,dce-sets,expand-softmax,split-unions,reorder-linear,"
        "canonicalize,cse,dce-sets,widen-domains"
    )
)
APART = tuple(passes_of("insert-all-reduce,canonicalize,cse,dce-sets,verify-ranks,plan-saves"))


@dataclass
class Ranked:
    """A graph on ranks; `owner` has the rank of each node by its set. `rows` says for each new set
    which rows of the old one it has, those of one rank after the other. A row that crosses is of
    the chunk that its number says."""

    func: FuncOp
    ranks: int
    given: Mapping[str, SetVal]
    owner: Mapping[str, Index]
    chunks: int = 1
    rows: dict[str, Index] = field(default_factory=dict[str, Index])
    sets: dict[str, SetVal] = field(default_factory=dict[str, SetVal])

    def __post_init__(self) -> None:
        self.types = [a.type for a in self.func.body.block.args if isinstance(a.type, SetType)]
        self.cut = Cut.of(SetEnv.of(self.func), self.types, nodes_of(self.func), self.chunks)
        numbers = np.arange(self.ranks)
        self.sets[self.cut.peers] = SetVal(self.ranks)
        self.sets[self.cut.ranks] = SetVal(self.ranks, {"peer": numbers})
        for name, nodes in self.cut.nodes.items():
            self._nodes(name, nodes)
        for (name, label), parts in self.cut.lookups.items():
            self._lookups(name, label, parts)
        for t in self.types:
            if t.label not in self.cut.nodes:
                self._edges(t)

    def _nodes(self, name: str, nodes: Nodes) -> None:
        old, owner = self.given[name], self.owner[name]
        own = np.argsort(owner, kind="stable")
        place = np.argsort(own)
        kept = self.cut.types[nodes.own].map_dict().keys() & old.maps.keys()
        self.rows[nodes.own] = own
        self.sets[nodes.own] = self._set(nodes.own, own, old, kept, {"rank": owner[own]})
        pairs = self._read_by_others(name)
        for chunk, (_, sends, reads) in enumerate(nodes.crossings):
            reader, node = pairs[pairs[:, 1] % self.chunks == chunk].T
            sent = np.lexsort((node, reader, owner[node]))
            ghost = np.lexsort((node, owner[node], reader))
            self.rows[reads] = node[ghost]
            maps = {"rank": reader[ghost], "peer": owner[node[ghost]]}
            self.sets[reads] = self._set(reads, node[ghost], old, kept, maps)
            maps = {"owner": place[node[sent]], "rank": owner[node[sent]], "peer": reader[sent]}
            self.sets[sends] = SetVal(len(sent), maps)

    def _read_by_others(self, name: str) -> Index:
        """Each (rank, node of another rank) of which the rank reads the node."""
        pairs = [np.zeros((0, 2), np.int64)]
        for t in self.types:
            maps = t.map_dict()
            if "src" in maps and maps["src"].codomain == name and len(self.cut.parts[t.label]) > 1:
                src, home = self.given[t.label].maps["src"], self._home(t)
                far = self.owner[name][src] != home
                pairs.append(np.stack([home, src], 1)[far])
        for reader, label in self.cut.lookups:
            if self._read(reader, label) == name:
                home, row = self.owner[reader], self.given[reader].maps[label]
                pairs.append(np.stack([home, row], 1)[self.owner[name][row] != home])
        return np.unique(np.concatenate(pairs), axis=0)

    def _read(self, name: str, label: str) -> str:
        """The nodes that a map of nodes leads to."""
        return next(t for t in self.types if t.label == name).map_dict()[label].codomain

    def _lookups(self, name: str, label: str, parts: Sequence[str]) -> None:
        """An edge a node, from the row that it reads."""
        read, row = self._read(name, label), self.given[name].maps[label]
        order = np.argsort(self.owner[name], kind="stable")
        home, row = self.owner[name][order], row[order]
        chunk = np.where(self.owner[read][row] == home, -1, row % self.chunks)
        for i, part in enumerate(parts):
            mine, ends = chunk == i - 1, self.cut.types[part].map_dict()
            src = self._places("src", ends["src"].codomain, row[mine], home[mine])
            self.sets[part] = SetVal(len(src), {"src": src, "dst": np.flatnonzero(mine)})

    def _home(self, t: SetType) -> Index:
        """The rank of each row of a set: that of its end."""
        into = [k for k, m in t.map_dict().items() if m.codomain in self.cut.nodes]
        key = "dst" if "dst" in into else into[0]
        return self.owner[t.map_dict()[key].codomain][self.given[t.label].maps[key]]

    def _edges(self, t: SetType) -> None:
        old, parts = self.given[t.label], self.cut.parts[t.label]
        if not self.cut.is_cut(t.label):
            self.sets[t.label] = old
            return
        home = self._home(t)
        order = np.argsort(home, kind="stable")
        if len(parts) == 1:
            chosen = [order]
        else:
            nodes = t.map_dict()["src"].codomain
            src = old.maps["src"][order]
            chunk = np.where(self.owner[nodes][src] == home[order], -1, src % self.chunks)
            chosen = [order[chunk == c] for c in range(-1, self.chunks)]
        for part, rows in zip(parts, chosen, strict=True):
            self.rows[part] = rows
            maps = {
                k: self._places(k, m.codomain, old.maps[k][rows], home[rows])
                for k, m in self.cut.types[part].map_dict().items()
            }
            self.sets[part] = SetVal(len(rows), maps)

    def _places(self, label: str, codomain: str, nodes: Index, home: Index) -> Index:
        """Rows of the old codomain as rows of the new one."""
        for name, sets in self.cut.nodes.items():
            if codomain == sets.own:
                return np.argsort(self.rows[sets.own])[nodes]
            if codomain in sets.ghost:
                size = max(1, self.given[name].n)
                known = self.sets[codomain].maps["rank"] * size + self.rows[codomain]
                order = np.argsort(known)
                return order[np.searchsorted(known, home * size + nodes, sorter=order)]
        return nodes

    def _set(
        self, name: str, rows: Index, old: SetVal, kept: Any, new: Mapping[str, Index]
    ) -> SetVal:
        every = {**{k: old.maps[k][rows] for k in kept}, **new}
        return SetVal(len(rows), {k: every[k] for k in self.cut.types[name].map_dict()})

    # ------------------------------------------------------------ values

    def arguments(self, after: FuncOp, args: Mapping[str, Any]) -> list[Any]:
        """The arguments of the partitioned function, from those of the old one by name."""
        out: list[Any] = []
        for name, a, _ in arguments(after):
            if isinstance(a.type, SetType):
                out.append(self.sets[a.type.label])
                continue
            assert isinstance(a.type, RowsType)
            s = a.type.dom.set
            if name == f"{s}_rows":
                out.append(self.rows[s])
            elif s in self.rows:
                out.append(args[name if name in args else without_part(name)][self.rows[s]])
            else:
                out.append(args[name])
        return out

    def of_rank(self, after: FuncOp, values: Sequence[Any], rank: int) -> list[Any]:
        """Those of one rank, from the arguments of all."""
        out: list[Any] = []
        for (_, a, _), x in zip(arguments(after), values, strict=True):
            if isinstance(a.type, SetType):
                out.append(self.sets_of(rank)[a.type.label])
                continue
            assert isinstance(a.type, RowsType)
            mine = self.mine(a.type.dom.set, rank)
            out.append(x if mine is None else np.asarray(x)[mine])
        return out

    def mine(self, name: str, rank: int) -> Index | None:
        """The rows of a set that a rank has; None where it has them all."""
        if name not in self.sets:  # a single row
            return None
        s, maps = self.sets[name], self.cut.types[name].map_dict()
        if "rank" in maps:
            return np.flatnonzero(s.maps["rank"] == rank)
        for k in sorted(maps):  # dst, where edges lie, before src
            if (there := self.mine(maps[k].codomain, rank)) is not None:
                return np.flatnonzero(np.isin(s.maps[k], there))
        return None

    def sets_of(self, rank: int) -> dict[str, SetVal]:
        """The sets as one rank has them."""
        out: dict[str, SetVal] = {}
        mine = {name: self.mine(name, rank) for name in self.sets}
        for name, s in self.sets.items():
            keep = mine[name]
            if keep is None:
                out[name] = s
                continue
            maps = {k: m[keep] for k, m in s.maps.items()}
            for k, m in self.cut.types[name].map_dict().items():
                if (there := mine[m.codomain]) is not None:
                    maps[k] = np.searchsorted(there, maps[k])
            out[name] = SetVal(len(keep), maps)
        return out

    def peers(self, rank: int) -> dict[str, Index]:
        """The ranks at the other ends of a rank's messages."""
        sets = self.sets_of(rank)
        names = [n for x in self.cut.nodes.values() for n in (*x.sent, *x.ghost)]
        return {n: sets[n].maps["peer"] for n in names}

    def joined(
        self, after: FuncOp, each: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> dict[str, Any]:
        """Some results of all ranks together, by name, from those of each; the ranks agree on what
        all have."""
        out: dict[str, Any] = {}
        for name, v, _ in results(after):
            if name not in names:
                continue
            assert isinstance(v.type, RowsType)
            s, first = v.type.dom.set, each[0][name]
            out[name] = whole = first
            if self.mine(s, 0) is not None:
                out[name] = whole = np.zeros((self.sets[s].n, *first.shape[1:]), first.dtype)
            for rank, given in enumerate(each):
                if (mine := self.mine(s, rank)) is not None:
                    whole[mine] = given[name]
                else:
                    np.testing.assert_array_equal(given[name], whole, err_msg=name)
        return out

    def results(self, after: FuncOp, values: Sequence[Any]) -> dict[str, Any]:
        """The results of a partitioned function in the order of the old rows, by name."""
        out: dict[str, Any] = {}
        old = {part: name for name, parts in self.cut.parts.items() for part in parts}
        for (name, v, _), x in zip(results(after), values, strict=True):
            assert isinstance(v.type, RowsType)
            s = v.type.dom.set
            if s not in self.rows:
                out[name] = x
                continue
            key = without_part(name) if len(self.cut.parts[old[s]]) > 1 else name
            shape = (self.given[old[s]].n, *x.shape[1:])
            out.setdefault(key, np.zeros(shape, x.dtype))[self.rows[s]] = x
        return out


def without_part(name: str) -> str:
    return PARTS.sub("", name)
