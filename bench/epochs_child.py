"""The child process of `gnnc bench epochs`: one way to train on sampled batches.

The first question has the `library`, the number of `workers` and what a `Task` is made of; the
answer says who samples (`fed_by`) and which nodes it expands (`rule`). `{"seed": .., "epochs": ..}`
trains so many epochs from weights that follow from the seed, and answers the `seconds` of each
epoch and the `losses` of all steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import typing
from torch_geometric.data import Data

import gnnc
from gnnc.bench import dgl_shim
from gnnc.bench.batch_models import BlockNet, TrimmedNet
from gnnc.bench.large_graphs import PIECE, large_power_law
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.torch.loader import NeighborLoader

WARM = 12
"""Batches before any epoch that is timed: after them nothing is compiled any more."""
EPOCHS = 1 << 16
"""More than a turn has; each turn has epochs of its own numbers."""


class Task:
    """Drawn features, and classes that follow from a node's own and the mean of those of its
    in-neighbours by drawn matrices; a share of the nodes are seeds."""

    def __init__(
        self,
        model: str,
        nodes: int,
        edges: int,
        features: int,
        hidden: int,
        classes: int,
        fanouts: list[int],
        batch_size: int,
        share: float,
        lr: float,
    ) -> None:
        torch.manual_seed(0)
        self.model, self.fanouts, self.batch_size, self.lr = model, fanouts, batch_size, lr
        self.widths = (features, *[hidden] * (len(fanouts) - 1), classes)
        self.edge_index = torch.from_numpy(large_power_law(nodes, edges))
        self.x = torch.randn(nodes, features)
        own, others = torch.randn(2, features, classes)
        means = mean_of_neighbours(self.x @ others, self.edge_index)
        self.y = (self.x @ own + 2 * means).argmax(1)
        self.seeds = torch.randperm(nodes)[: max(1, round(share * nodes))]

    def weights(self, seed: int) -> BlockNet:
        """A model whose weights all contestants begin with."""
        torch.manual_seed(seed)
        return BlockNet(self.model, self.widths)


def mean_of_neighbours(x: Tensor, edge_index: Tensor) -> Tensor:
    """Of each node (n x f), 0 where it has none."""
    sums = torch.zeros_like(x)
    for src, dst in zip(*(end.split(PIECE) for end in edge_index), strict=True):
        sums.index_add_(0, dst, x[src])
    counts = edge_index[1].bincount(minlength=len(x)).clamp(min=1)
    return sums / counts[:, None]


Batch = tuple[tuple[Any, ...], Tensor]
"""What the model is called on, and the classes of the rows it gives."""


@dataclass(frozen=True)
class Way:
    """A model, `take` that gives it weights, and batches by turn and epoch."""

    model: nn.Module
    take: Callable[[BlockNet], object]
    batches: Callable[[int], Iterator[Batch]]
    fed_by: str
    rule: str
    features: Tensor | None = None
    """Of all nodes, where loss, gradients and Adam are one program: it reads those of a batch by
    numbers, which batches have in the place of features."""


ONCE, EACH_HOP = "once", "at every hop"
"""Which nodes are expanded, by PyG's rule and by DGL's."""


def by_gnnc(task: Task, workers: int) -> Way:
    """gnnc.loader and gnnc.compile, as a user of PyG writes it."""
    model = gnnc.compile(TrimmedNet(task.model, task.widths))
    loader = _pyg_loader(NeighborLoader, task, seed=0, num_workers=workers)

    def batches(number: int) -> Iterator[Batch]:
        loader.set_epoch(number)
        return map(_trimmed, loader)

    return Way(model, _loading(model), batches, "gnnc.loader", ONCE)


def by_gnnc_step(task: Task, workers: int) -> Way:
    """gnnc.loader and gnnc.train_step, which reads rows of features itself."""
    model = TrimmedNet(task.model, task.widths)
    data = Data(y=task.y, edge_index=task.edge_index, num_nodes=len(task.x))
    loader = _pyg_loader(NeighborLoader, task, data, seed=0, num_workers=workers)

    def batches(number: int) -> Iterator[Batch]:
        loader.set_epoch(number)
        return (_trimmed(batch, batch.n_id) for batch in loader)

    return Way(model, _loading(model), batches, "gnnc.loader", ONCE, task.x)


def by_gnnc_blocks(task: Task, workers: int) -> Way:
    """PyG's layers, compiled, on blocks as DGL's rule has them."""
    import gnnc.dgl as dgl

    model = gnnc.compile(BlockNet(task.model, task.widths))
    graph = dgl.graph(tuple(task.edge_index), num_nodes=len(task.x))
    graph.ndata["x"], graph.ndata["y"] = task.x, task.y
    sampler = dgl.dataloading.NeighborSampler(
        task.fanouts, prefetch_node_feats=["x"], prefetch_labels=["y"]
    )
    options = {"batch_size": task.batch_size, "num_workers": workers, "shuffle": True, "seed": 0}
    loader = dgl.dataloading.DataLoader(graph, task.seeds, sampler, **options)

    def batches(number: int) -> Iterator[Batch]:
        loader.set_epoch(number)
        return (on_blocks(blocks) for _, _, blocks in loader)

    return Way(model, _loading(model), batches, "gnnc.dgl", EACH_HOP)


def on_blocks(blocks: Any) -> Batch:
    """What a `BlockNet` takes of a batch of DGL's interface."""
    edges = [(torch.stack(block.edges()), block.num_dst_nodes()) for block in blocks]
    return (blocks[0].srcdata["x"], edges), blocks[-1].dstdata["y"]


def _loading(model: nn.Module) -> Callable[[BlockNet], object]:
    return lambda weights: model.load_state_dict(weights.state_dict())


def _pyg_loader(loader: Any, task: Task, data: Data | None = None, **options: Any) -> Any:
    data = data or Data(x=task.x, y=task.y, edge_index=task.edge_index)
    hops = task.fanouts[::-1]
    options = {"batch_size": task.batch_size, "shuffle": True, **options}
    return loader(data, hops, input_nodes=task.seeds, **options)


def _trimmed(batch: Any, x: Tensor | None = None) -> Batch:
    hops = batch.num_sampled_nodes, batch.num_sampled_edges
    x = batch.x if x is None else x
    return (x, batch.edge_index, *hops), batch.y[: batch.batch_size]


def by_dgl(task: Task, workers: int) -> Way:
    """DGL's loader and layers."""
    dgl_shim.install()
    from gnnc.bench.dgl_batches import DglBlockNet

    model = DglBlockNet(task.model, task.widths)

    def made(blocks: Any) -> Batch:
        return (blocks[0].srcdata["x"], blocks), blocks[-1].dstdata["y"]

    return Way(model, lambda w: model.take(w.convs), _by_dgl(task, workers, made), "DGL", EACH_HOP)


def _by_dgl(
    task: Task, workers: int, made: Callable[[Any], Batch]
) -> Callable[[int], Iterator[Batch]]:
    """Batches of DGL's loader, as they are made of its blocks."""
    import dgl

    from gnnc.bench.dgl_batches import loader

    data = task.x, task.y, task.edge_index, task.seeds
    found = loader(*data, task.fanouts, task.batch_size, workers)

    def batches(number: int) -> Iterator[Batch]:
        dgl.seed(number)
        torch.manual_seed(number)
        return (made(blocks) for _, _, blocks in found)

    return batches


def by_pyg(task: Task, workers: int) -> Way:
    """PyG's layers on batches of PyG's loader; where it cannot sample, on those of DGL's."""
    if typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE:
        from torch_geometric import loader

        model = TrimmedNet(task.model, task.widths)
        found = _pyg_loader(loader.NeighborLoader, task, num_workers=workers)

        def batches(number: int) -> Iterator[Batch]:
            torch.manual_seed(number)
            return map(_trimmed, found)

        return Way(model, _loading(model), batches, "PyG", ONCE)
    dgl_shim.install()
    model = BlockNet(task.model, task.widths)

    return Way(model, _loading(model), _by_dgl(task, workers, on_blocks), "DGL", EACH_HOP)


LIBRARIES: dict[str, Callable[[Task, int], Way]] = {
    "gnnc": by_gnnc,
    "gnnc-step": by_gnnc_step,
    "gnnc-blocks": by_gnnc_blocks,
    "dgl": by_dgl,
    "pyg": by_pyg,
}


class Training:
    """A way that is ready to train."""

    def __init__(self, library: str, workers: int, **task: Any) -> None:
        self.task, self.compiled = Task(**task), library.startswith("gnnc")
        self.way = LIBRARIES[library](self.task, workers)
        self.optimizer = torch.optim.Adam(self.way.model.parameters(), lr=self.task.lr)
        whole = self.way.features is not None
        self.step = gnnc.train_step(self._of_all, self.optimizer) if whole else self._step
        self._start(0)
        for batch in islice(self.way.batches(EPOCHS - 1), WARM):
            self.step(*batch)

    def _start(self, seed: int) -> None:
        self.way.take(self.task.weights(seed))
        self.optimizer.state.clear()

    def _loss(self, inputs: tuple[Any, ...], y: Tensor) -> Tensor:
        return F.cross_entropy(self.way.model(*inputs), y)

    def _of_all(self, inputs: tuple[Any, ...], y: Tensor) -> Tensor:
        """The loss of a batch whose features are among those of all nodes."""
        assert self.way.features is not None
        numbers, *others = inputs
        return self._loss((self.way.features[numbers], *others), y)

    def _step(self, inputs: tuple[Any, ...], y: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = self._loss(inputs, y)
        loss.backward()
        self.optimizer.step()
        return loss

    def train(self, seed: int, epochs: int) -> Message:
        self._start(seed)
        seconds: list[float] = []
        losses: list[float] = []
        for epoch in range(epochs):
            start = time.perf_counter()
            batches = self.way.batches(seed * EPOCHS + epoch)
            losses += [self.step(*batch).item() for batch in batches]
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds, "losses": losses}

    def description(self) -> Message:
        """Who samples by which rule, and what of a compiled model runs in torch."""
        compiled = self.way.model if self.way.features is None else self.step
        in_torch = gnnc.explain(compiled).fallbacks if self.compiled else []
        return {"fed_by": self.way.fed_by, "rule": self.way.rule, "in_torch": in_torch}


def main() -> None:
    training: Training | None = None

    def work(question: Message) -> Message:
        nonlocal training
        if training is None:
            training = Training(**question)
            return training.description()
        return training.train(**question)

    serve(work)


if __name__ == "__main__":
    main()
