"""`g.ndata`, `g.nodes['user'].data`, `g.edges[ids].data` and their kin: features as dicts.

A view holds no frame, it asks the graph at each use, so one that was made before `local_scope` sees
what is in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from .base import DGLError
from .frames import Frame, Rows, checked, write_rows
from .init import Initializers

if TYPE_CHECKING:
    from .graph import DGLGraph


class Column(NamedTuple):
    """Where features of one type are: their frame, how many rows, and what these begin with."""

    frame: Frame
    rows: int
    initializers: Initializers


class DataView(MutableMapping[str, Any]):
    """Features of one type, of all rows or of some (`ids`)."""

    def __init__(
        self,
        graph: DGLGraph,
        what: str,
        column: Callable[[], Column],
        ids: Tensor | None = None,
    ):
        self._graph, self._what, self._column, self._ids = graph, what, column, ids

    def __getitem__(self, key: str) -> Tensor:
        frame = self._column().frame
        return frame[key] if self._ids is None else frame[key].index_select(0, self._ids)

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, dict):
            raise AssertionError(
                f"The data of one {self._what} type is set as a tensor, not as a dict: {key!r}"
            )
        frame, rows, initializers = self._column()
        given = rows if self._ids is None else self._ids.shape[0]
        value = checked(key, value, given, self._graph.device, self._what)
        if self._ids is None:
            frame[key] = value
        else:
            write_rows(frame, key, self._ids, value, rows, initializers)

    def __delitem__(self, key: str) -> None:
        del self._column().frame[key]

    def __contains__(self, key: object) -> bool:
        return key in self._column().frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._column().frame)

    def __len__(self) -> int:
        return len(self._column().frame)

    def __repr__(self) -> str:
        return repr(dict(Rows(self._column().frame, self._ids)))


class TypedDataView(MutableMapping[str, Any]):
    """Features of several types: each item is a dict of tensors by type."""

    def __init__(self, what: str, views: dict[Any, DataView], key: Callable[[Any], Any]):
        self._what, self._views, self._key = what, views, key

    def __getitem__(self, key: str) -> dict[Any, Tensor]:
        return {kind: view[key] for kind, view in self._views.items() if key in view}

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise AssertionError(
                f"There are several {self._what} types, so {key!r} is set as a dict from type to "
                f"tensor, got {type(value).__name__}"
            )
        for kind, tensor in value.items():
            self._views[self._key(kind)][key] = tensor

    def __delitem__(self, key: str) -> None:
        for view in self._views.values():
            if key in view:
                del view[key]

    def __contains__(self, key: object) -> bool:
        return any(key in view for view in self._views.values())

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for view in self._views.values() for key in view))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr({key: self[key] for key in self})


class Space(NamedTuple):
    """What `g.nodes[..]` and `g.edges[..]` give: an object with the features as `data`."""

    data: DataView


class NodeView:
    """`g.nodes`, `g.srcnodes` or `g.dstnodes`: called it gives ids, indexed features."""

    def __init__(self, graph: DGLGraph, side: str):
        self._graph, self._side = graph, side

    def __call__(self, ntype: str | None = None) -> Tensor:
        """All ids of the nodes of a type, `(nodes,)`."""
        rows = self._graph._nodes_of(ntype, self._side).rows
        return torch.arange(rows, dtype=self._graph.idtype, device=self._graph.device)

    def __getitem__(self, key: Any) -> Space:
        ids, ntype = key if isinstance(key, tuple) else (key, None)
        if ids is None or isinstance(ids, str):
            ids, ntype = None, ids
        elif isinstance(ids, slice):
            _full(ids)
            ids = None
        else:
            ids = self._graph._ids(ids, "nodes")
        return Space(self._graph._node_view(ntype, self._side, ids))


class EdgeView:
    """`g.edges`: called it gives ends or ids, indexed features."""

    def __init__(self, graph: DGLGraph):
        self._graph = graph

    def __call__(self, form: str = "uv", order: str = "eid", etype: Any = None) -> Any:
        """As `DGLGraph.all_edges`."""
        return self._graph.all_edges(form, order, etype)

    def __getitem__(self, key: Any) -> Space:
        graph = self._graph
        if key is None or isinstance(key, str) or (isinstance(key, tuple) and len(key) == 3):
            return Space(graph._edge_view(key))
        if isinstance(key, slice):
            _full(key)
            return Space(graph._edge_view(None))
        return Space(graph._edge_view(None, graph._edge_ids(key, None)))


def _full(ids: slice) -> None:
    if ids != slice(None):
        raise DGLError('Currently only full slice ":" is supported')
