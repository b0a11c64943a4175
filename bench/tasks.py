"""What the contestants of `gnnc bench` train: a model and the graph it is called on, in each of the
forms that models take graphs in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from ..frontend.tools.datasets import NodeTask, power_law
from ..frontend.tools.models import Net
from .graphs import MODELS, RELATIONAL_WIDTH, EdgeType
from .labelled import Labelled
from .relational_models import KINDS, HeteroNet, TypedNet
from .relations import Relations, draw


@dataclass(frozen=True)
class Task(ABC):
    """A kind of model and its widths; `y` has the classes, below widths[-1], of the rows that the
    model gives."""

    kind: str
    widths: Sequence[int]
    y: Tensor

    @property
    @abstractmethod
    def inputs(self) -> tuple[Any, ...]:
        """What a model written for PyG is called on."""

    @abstractmethod
    def model(self) -> nn.Module:
        """A new model written for PyG, its parameters drawn."""

    @abstractmethod
    def shuffled(self, seed: int) -> Self:
        """The same task with its edges in another order: a graph that nobody has seen."""


@dataclass(frozen=True)
class PlainTask(Task):
    """A graph without types: x (n x widths[0]) and edge_index (2 x e)."""

    x: Tensor
    edge_index: Tensor

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.x, self.edge_index

    def model(self) -> nn.Module:
        return Net(self.kind, self.widths)

    def shuffled(self, seed: int) -> Self:
        return replace(self, edge_index=self.edge_index[:, _order(self.edge_index, seed)])


@dataclass(frozen=True)
class TypedTask(Task):
    """All nodes in one x (n x widths[0]), and types as numbers: edge_type (e) below `relations`,
    node_type (n, ascending) below `node_types`."""

    x: Tensor
    edge_index: Tensor
    edge_type: Tensor
    node_type: Tensor
    relations: int
    node_types: int

    @property
    def inputs(self) -> tuple[Any, ...]:
        types = (self.edge_type, self.node_type) if KINDS[self.kind].node_types else ()
        return self.x, self.edge_index, *(types or (self.edge_type,))

    def model(self) -> nn.Module:
        return TypedNet(self.kind, self.widths, self.relations, self.node_types)

    def shuffled(self, seed: int) -> Self:
        order = _order(self.edge_index, seed)
        edges = {"edge_index": self.edge_index[:, order], "edge_type": self.edge_type[order]}
        return replace(self, **edges)


@dataclass(frozen=True)
class HeteroTask(Task):
    """Dictionaries by type of x (n x widths[0]) and edge_index (2 x e, numbered within the types of
    its ends); the model gives the rows of type `target`."""

    x: Mapping[str, Tensor]
    edge_index: Mapping[EdgeType, Tensor]
    target: str

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.x, self.edge_index

    def model(self) -> nn.Module:
        return HeteroNet(self.widths, (list(self.x), list(self.edge_index)), self.target)

    def shuffled(self, seed: int) -> Self:
        edges = {kind: e[:, _order(e, seed)] for kind, e in self.edge_index.items()}
        return replace(self, edge_index=edges)


def _order(edge_index: Tensor, seed: int) -> Tensor:
    return torch.randperm(edge_index.shape[1], generator=torch.Generator().manual_seed(seed))


def task_of(model: str, graph: Any, hidden: int, layers: int) -> Task:
    """The task of a question (`graphs.Graph.question`)."""
    if not MODELS[model].relational:
        found = _plain(model, graph)
        x, edge_index, y = map(torch.from_numpy, (found.x, found.edge_index, found.y))
        widths = _widths(x.shape[1], hidden, layers, found.classes)
        return PlainTask(model, widths, y, x, edge_index)
    widths = _widths(RELATIONAL_WIDTH, hidden, layers, RELATIONAL_WIDTH)
    return relational_task(model, widths, _relations(graph))


def _widths(features: int, hidden: int, layers: int, classes: int) -> list[int]:
    return [features, *[hidden] * (layers - 1), classes]


def _plain(model: str, graph: Any) -> Labelled | NodeTask:
    if isinstance(graph, dict):
        return Labelled.load(Path(graph["file"]))
    return power_law(model, *graph)


def _relations(graph: Mapping[str, Any]) -> Relations:
    if "file" in graph:
        return Relations.load(Path(graph["file"]))
    edges = {(a, name, b): count for a, name, b, count in graph["edges"]}
    return draw(graph["nodes"], edges, graph["target"], scattered=graph["scattered"])


def relational_task(model: str, widths: Sequence[int], graph: Relations, seed: int = 0) -> Task:
    """Drawn features for every node, and a drawn class for every node that the loss is over: with
    `hgt` those of the target's type, with the others all."""
    random = torch.Generator().manual_seed(seed)
    nodes = sum(graph.nodes.values())
    x = torch.randn(nodes, widths[0], generator=random)
    y = torch.randint(widths[-1], (nodes,), generator=random)
    offsets = graph.offsets()
    edges = {kind: torch.from_numpy(found) for kind, found in graph.edges.items()}
    if model == "hgt":
        rows = {t: slice(offsets[t], offsets[t] + n) for t, n in graph.nodes.items()}
        by_type = {t: x[place] for t, place in rows.items()}
        return HeteroTask(model, widths, y[rows[graph.target]], by_type, edges, graph.target)
    edge_index, edge_type = numbered_through(edges, offsets)
    counts = torch.tensor(list(graph.nodes.values()))
    node_type = torch.arange(len(counts)).repeat_interleave(counts)
    sizes = {"relations": len(edges), "node_types": len(counts)}
    return TypedTask(model, widths, y, x, edge_index, edge_type, node_type, **sizes)


def numbered_through(
    edges: Mapping[EdgeType, Tensor], offsets: Mapping[str, int]
) -> tuple[Tensor, Tensor]:
    """The edges of all relations in one edge_index (2 x e), with the numbers of their relations
    (e); nodes of a type begin at its offset."""
    parts = [
        found + torch.tensor([[offsets[source]], [offsets[destination]]])
        for (source, _, destination), found in edges.items()
    ]
    counts = torch.tensor([part.shape[1] for part in parts])
    return torch.cat(parts, 1), torch.arange(len(parts)).repeat_interleave(counts)
