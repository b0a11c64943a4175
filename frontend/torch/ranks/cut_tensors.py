"""Tensors that hold one rank's rows of a graph that is cut: which ones, and of how many.

Compiled calls know them by identity: what is computed of such a tensor outside of compiled code is
a tensor like any other.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .chunks import chunk_of

Kind = Literal["nodes", "edges", "index", "table", "entries"]
"""Rows of nodes, rows of edges, both ends of edges (2 x edges), rows of a parameter, or entries of
nodes that are taken as a sparse matrix."""


@dataclass(frozen=True, eq=False)
class NodePart:
    """The nodes of a rank.

    Attributes:
        owned: int64, their numbers in the whole graph.
        ghosts: int64, those of nodes of other ranks that it reads, by owner.
        ghost_owner: int64, the rank that each ghost is of, ascending.
        sent: int32, places in `owned` of the rows that others read, by reader.
        reader: int64, the rank that each of `sent` is for, ascending.
        total: nodes of the whole graph.
        chunks: how many the rows that cross come in.
        extends: a part with the same nodes, all of whose ghosts this one has too.
    """

    owned: NDArray[np.int64]
    ghosts: NDArray[np.int64]
    ghost_owner: NDArray[np.int64]
    sent: NDArray[np.int32]
    reader: NDArray[np.int64]
    total: int
    chunks: int
    extends: NodePart | None = None

    def adds_to(self, part: NodePart) -> bool:
        """Whether it has all that another part has, which it may be itself."""
        return self is part or (self.extends is not None and self.extends.adds_to(part))

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of nodes, owned ones or ghosts, by their numbers in the whole graph: ghosts
        count on behind the owned nodes."""
        order = np.argsort(self.numbers, kind="stable")
        return order[np.searchsorted(self.numbers, numbers, sorter=order)]

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Those in the whole graph of the owned nodes, and behind these of the ghosts."""
        return np.concatenate([self.owned, self.ghosts])

    @cached_property
    def sent_chunk(self) -> NDArray[np.int64]:
        """The chunk of each of `sent`."""
        return chunk_of(self.reader, self.chunks)

    @cached_property
    def ghost_chunk(self) -> NDArray[np.int64]:
        """The chunk of each ghost."""
        return chunk_of(self.ghost_owner, self.chunks)


@dataclass(frozen=True, eq=False)
class EdgePart:
    """The edges of a rank: local ones first, then those that lead from ghosts, by the chunk that
    these come in. `stops` says where local ones end, and those of each chunk; `numbers`, int64, are
    those in the whole graph, which has `total`."""

    source: NodePart
    target: NodePart
    stops: tuple[int, ...]
    numbers: NDArray[np.int64]
    total: int

    @property
    def runs(self) -> tuple[slice, ...]:
        """The local edges, and those of each chunk."""
        return tuple(slice(a, b) for a, b in pairwise((0, *self.stops)))

    def numbers_of_ends(self, ends: Tensor) -> Tensor:
        """Ends of some of these edges, int [edges, 2], as numbers in the whole graph: what is
        computed of ends is what it is there."""
        each = zip((self.source, self.target), ends.unbind(1), strict=True)
        columns = [torch.from_numpy(nodes.numbers)[x] for nodes, x in each]
        return torch.stack(columns, 1).to(ends.dtype)


@dataclass(frozen=True)
class CutTensor:
    """What rows a tensor holds of one of the `shape` that it has in the whole graph. Those of edges
    are local ones first; the ends of edges are places among the owned nodes, and behind these among
    the ghosts. `parameter` is the name of what is a table in the model, else empty. `sparse`: most
    of its numbers were 0 when it was cut, on all ranks together."""

    kind: Kind
    part: NodePart | EdgePart
    shape: tuple[int, ...]
    parameter: str = ""
    sparse: bool = False

    @property
    def edges(self) -> EdgePart:
        """The edges whose ends it holds."""
        assert isinstance(self.part, EdgePart)
        return self.part


_lock = threading.Lock()
_known: dict[int, tuple[weakref.ref[Tensor], CutTensor]] = {}


def note(x: Tensor, cut: CutTensor) -> None:
    """Makes a tensor known, for as long as it lives."""
    key = id(x)

    def forget(_: object) -> None:
        with _lock:
            _known.pop(key, None)

    with _lock:
        _known[key] = weakref.ref(x, forget), cut


def of(x: Any) -> CutTensor | None:
    """What is known of a tensor."""
    found = _known.get(id(x))
    return None if found is None or found[0]() is not x else found[1]


def edges_of(x: Any, name: str) -> EdgePart:
    """The edges whose ends a tensor holds.

    Raises:
        ValueError: they are not known.
    """
    found = of(x)
    if found is None or found.kind != "index":
        raise ValueError(
            f"{name} is not a tensor of ends of edges that gnnc.distribute returned, as it was in "
            "the call that this was compiled for"
        )
    return found.edges


@dataclass(frozen=True)
class Shaped:
    """What has a shape."""

    shape: tuple[int, ...]


def whole(x: Any) -> Any:
    """A stand-in with the shape of the whole graph's tensor of which `x` has one rank's rows; `x`
    where it is of no part."""
    found = of(x)
    return x if found is None else Shaped(found.shape)


def kinds(args: Sequence[Any]) -> dict[int, Kind]:
    """The places of those among the arguments of a call that hold rows of one rank."""
    if not _known:
        return {}
    found = ((i, of(x)) for i, x in enumerate(args))
    return {i: cut.kind for i, cut in found if cut is not None}


def parameters(args: Sequence[Any]) -> list[str]:
    """The names of those among the arguments of a call that are parameters which are cut."""
    found = (of(x) for x in args)
    return [cut.parameter for cut in found if cut is not None and cut.parameter]


def chunks(args: Sequence[Any]) -> int:
    """In how many chunks rows cross of the graph whose rows are among the arguments of a call."""
    found = (of(x) for x in args)
    parts = [c.part for c in found if c is not None]
    nodes = [p if isinstance(p, NodePart) else p.target for p in parts]
    return max((n.chunks for n in nodes), default=1)
