"""What each set of a program becomes on ranks: parts with owned rows, ghosts, messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.utils.exceptions import PassFailedException

from ....dialects.inter.ranks import PEER, RANK
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.types import Map, SetType

OWNER = "owner"
"""The map of a row that is sent to the owned row that it is."""


class Crossing(NamedTuple):
    """The sets of rows that one message takes to each rank: owned, sent to others, read of
    others."""

    own: str
    sent: str
    ghost: str


class Nodes(NamedTuple):
    """The sets of some nodes: owned, and by chunks those sent to others and read of others."""

    own: str
    sent: tuple[str, ...]
    ghost: tuple[str, ...]

    @property
    def crossings(self) -> tuple[Crossing, ...]:
        """Chunk by chunk."""
        return tuple(Crossing(self.own, s, g) for s, g in zip(self.sent, self.ghost, strict=True))


@dataclass
class Cut:
    """Sets by their old names.

    `nodes` are those that are cut; `parts` says for every set, new ones included, of which sets its
    rows are, the local one first: one set, or local edges and the remote ones of each chunk.
    `far` has the maps by which edges lead to nodes that they do not lie with, `loops` new sets of
    edges whose ends are one node.
    `chunk` has the ghosts, and the edges that lead from them, with the number of their chunk.
    `lookups` has the maps of nodes into nodes, by their set and label: each becomes edges from the
    row that is read (`src`) to the row that reads it (`dst`), local ones first.
    """

    ranks: str
    peers: str
    nodes: dict[str, Nodes] = field(default_factory=dict[str, Nodes])
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    chunk: dict[str, int] = field(default_factory=dict[str, int])
    lookups: dict[tuple[str, str], tuple[str, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[str, ...]]
    )
    types: dict[str, SetType] = field(default_factory=dict[str, SetType])
    far: set[str] = field(default_factory=set[str])
    loops: set[str] = field(default_factory=set[str])

    # ------------------------------------------------------------ arguments

    @staticmethod
    def of(
        env: SetEnv,
        arguments: Iterable[SetType],
        cut: Iterable[str],
        chunks: int = 1,
        far: Collection[str] = (),
    ) -> Cut:
        """The sets of a function's arguments, in an order in which maps lead back; the rows that
        cross do so in so many chunks. The maps `far`, named as `g.dst`, lead to rows that
        their edges do not lie with; of a set without one it is `src`, where there is a `dst` too.

        Raises:
            PassFailedException: a set has maps into cut sets in a way that is not known here.
        """
        arguments, cut = tuple(arguments), tuple(cut)
        _check_ends(arguments, cut)
        made = Cut(env.fresh("ranks"), env.fresh("peers"))
        made.types[made.peers] = SetType.get(made.peers)
        made.types[made.ranks] = SetType.get(made.ranks, {PEER: Map(made.peers, ("mono",))})
        for name in cut:
            made.add_nodes(env, name, chunks, cut)
        for name in cut:
            for k, m in env.info(name).maps.items():
                if m.codomain in cut:
                    made.add_lookup(env, name, k, m.codomain)
        for t in arguments:
            if t.label not in made.nodes:
                made.add_argument(env, t, far)
        return made

    def add_nodes(self, env: SetEnv, name: str, chunks: int, cut: Collection[str]) -> None:
        if name in self.nodes:
            return
        own = env.fresh(f"{name}_own")
        sent, ghost = (
            tuple(env.fresh(f"{name}_{_of_chunk(kind, i)}") for i in range(chunks))
            for kind in ("sent", "ghost")
        )
        self.nodes[name] = nodes = Nodes(own, sent, ghost)
        self.parts[name] = (own,)
        self.chunk |= {ghost: i for i, ghost in enumerate(nodes.ghost)}
        old = env.info(name).maps
        if taken := [k for k in old if k in (RANK, PEER)]:
            raise PassFailedException(f"partition: {name} has a map {taken[0]}: name it otherwise")
        kept = {k: _here(m) for k, m in old.items() if m.codomain not in cut}
        mine, at = {RANK: Map(self.ranks)}, {RANK: Map(self.ranks), PEER: Map(self.peers)}
        self.types[own] = SetType.get(own, kept | mine)
        eqs = [(f"{OWNER}.{RANK}", RANK)]
        for _, sent, ghost in nodes.crossings:
            self.types[sent] = SetType.get(sent, {OWNER: Map(own)} | at, eqs=eqs)
            self.types[ghost] = SetType.get(ghost, kept | at)

    def add_lookup(self, env: SetEnv, name: str, label: str, read: str) -> None:
        """The map `label` of the nodes `name` to the nodes `read`, as edges."""
        if (name, label) in self.lookups:
            return
        there, home = self.nodes[read], Map(self.nodes[name].own, ("mono",))
        ends = {"local": there.own}
        ends |= {_of_chunk("remote", i): ghost for i, ghost in enumerate(there.ghost)}
        made: list[str] = []
        for kind, end in ends.items():
            made.append(part := env.fresh(f"{name}_{label}_{kind}"))
            eqs = [(f"src.{RANK}", f"dst.{RANK}")]
            self.types[part] = SetType.get(part, {"src": Map(end), "dst": home}, eqs=eqs)
            if end in self.chunk:
                self.chunk[part] = self.chunk[end]
        self.lookups[name, label] = tuple(made)

    def add_argument(self, env: SetEnv, t: SetType, far: Collection[str] = ()) -> None:
        """A set that is not cut itself: as it is, or as parts where its maps lead to cut sets."""
        into = {k: m.codomain for k, m in t.map_dict().items() if m.codomain in self.nodes}
        named = [k for k in into if f"{t.label}.{k}" in far]
        away = named or [k for k in into if k == "src" and "dst" in into]
        homes = [k for k in into if k not in away]
        if not into:
            self.parts[t.label] = (t.label,)
            self.types[t.label] = t
        elif len(homes) > 1 and not named:
            raise PassFailedException(
                f"partition: the maps {', '.join(into)} of {t.label} lead to cut sets: which rows "
                "it lies with is not known"
            )
        elif not away:
            self._add_part(env, t, t.label, dict.fromkeys(homes))
        else:
            self.far.update(away)
            here: dict[str, int | None] = dict.fromkeys(homes)
            self._add_part(env, t, f"{t.label}_local", here | dict.fromkeys(away))
            for chunk in range(len(self.nodes[into[away[0]]].ghost)):
                name = f"{t.label}_{_of_chunk('remote', chunk)}"
                self._add_part(env, t, name, here | dict.fromkeys(away, chunk))

    def _add_part(self, env: SetEnv, t: SetType, hint: str, into: dict[str, int | None]) -> None:
        """One part of a set: `into` are its maps into cut sets, and to which chunk of ghosts they
        lead; None where to owned rows."""
        name = hint if hint == t.label else env.fresh(hint)
        maps: dict[str, Map] = {}
        for k, m in t.map_dict().items():
            end = m.codomain
            if k in into:
                nodes, chunk = self.nodes[end], into[k]
                end = nodes.own if chunk is None else nodes.ghost[chunk]
            maps[k] = Map(end, _here(m).flags)
        one, *others = into
        eqs = [(f"{k}.{RANK}", f"{one}.{RANK}") for k in others]
        chunks = dict.fromkeys(c for c in into.values() if c is not None)
        local = [] if chunks else list(t.equations)
        self.parts[t.label] = (*self.parts.get(t.label, ()), name)
        self.types[name] = SetType.get(name, maps, (), [*local, *eqs], t.pair_keys)
        for chunk in chunks:
            self.chunk[name] = chunk

    # ------------------------------------------------------------ questions

    def is_cut(self, name: str) -> bool:
        """Whether ranks have different rows of a set."""
        return self.parts[name] != (name,) or any(
            m.codomain in {n for x in self.nodes.values() for n in (x.own, *x.sent, *x.ghost)}
            for m in self.types[name].map_dict().values()
        )

    def messages(self, ghost: str) -> Crossing | None:
        """The sets of the message by which the rows of a set of ghosts come."""
        every = (c for n in self.nodes.values() for c in n.crossings)
        return next((c for c in every if c.ghost == ghost), None)

    def kind(self, part: str) -> str:
        """What names of values say of the part that they are of: `local`, `remote`, or, of the
        second chunk, `remote2`."""
        chunk = self.chunk.get(part)
        return "local" if chunk is None else _of_chunk("remote", chunk)


def _of_chunk(kind: str, chunk: int) -> str:
    return f"{kind}{chunk + 1}" if chunk else kind


def _check_ends(arguments: Iterable[SetType], cut: Iterable[str]) -> None:
    """Refuses maps whose rows nothing brings to the rank: those into sets that are cut because
    their own maps lead to nodes."""
    maps = {t.label: {k: m.codomain for k, m in t.map_dict().items()} for t in arguments}
    edges = {s for s, ends in maps.items() if any(c in cut for c in ends.values())} - {*cut}
    for s, ends in maps.items():
        for k, c in ends.items():
            if c in edges:
                raise PassFailedException(
                    f"partition: the map {k} of {s} leads to rows of {c} that may be of another "
                    "rank"
                )


def _here(m: Map) -> Map:
    """A map as one rank has it: its rows need not have all images."""
    return Map(m.codomain, tuple(f for f in m.flags if f != "onto"))
