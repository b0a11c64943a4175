"""The child process of `gnnc bench`: one contestant, ready to train epochs when asked.

The first question, `{"contestant": .., "model": .., "graph": [nodes, edges, features, classes],
"hidden": .., "layers": ..}`, prepares it and trains two epochs; every `{"epochs": n}` after that
trains n more.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gnnc.frontend.children import Message, serve
from gnnc.frontend.datasets import power_law
from gnnc.frontend.memory import Watermark
from gnnc.frontend.models import Net, warm_up

WARM_UP = 2

Prepared = tuple[torch.nn.Module, tuple[Any, ...]]


def pyg(kind: str, widths: Sequence[int], x: Tensor, edge_index: Tensor) -> Prepared:
    """PyG as most people use it: an edge_index and one message per edge."""
    return Net(kind, widths), (x, edge_index)


def pyg_sparse(kind: str, widths: Sequence[int], x: Tensor, edge_index: Tensor) -> Prepared:
    """PyG as its documentation advises where memory is short: a CSR matrix of torch.sparse."""
    from torch_geometric.utils import to_torch_csr_tensor

    torch.sparse.check_sparse_tensor_invariants.disable()  # what it does anyway, and warns of
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        adjacency = to_torch_csr_tensor(edge_index.flip(0), size=(len(x), len(x)))
    return Net(kind, widths), (x, adjacency)


def gnnc(kind: str, widths: Sequence[int], x: Tensor, edge_index: Tensor) -> Prepared:
    """The first contestant's model, compiled."""
    import gnnc

    model = Net(kind, widths)  # before the warm-up, which draws random numbers too
    warm_up(gnnc.compile)
    return gnnc.compile(model), (x, edge_index)


def dgl(kind: str, widths: Sequence[int], x: Tensor, edge_index: Tensor) -> Prepared:
    """DGL's layers on a DGL graph."""
    from . import dgl_shim

    dgl_shim.install()
    from .dgl_models import DglNet, graph_of

    return DglNet(kind, widths), (graph_of(kind, edge_index, len(x)), x)


CONTESTANTS: dict[str, Callable[[str, Sequence[int], Tensor, Tensor], Prepared]] = {
    "gnnc": gnnc,
    "pyg": pyg,
    "pyg-sparse": pyg_sparse,
    "dgl": dgl,
}


class Contest:
    """A prepared contestant: model, data, optimizer, and the memory it started from."""

    def __init__(self, contestant: str, model: str, graph: Sequence[int], hidden: int, layers: int):
        task = power_law(model, *graph)
        x, edge_index = torch.from_numpy(task.x), torch.from_numpy(task.edge_index)
        self.y = torch.from_numpy(task.y)
        widths = [x.shape[1], *[hidden] * (layers - 1), task.classes]
        torch.manual_seed(0)
        self.model, self.inputs = CONTESTANTS[contestant](model, widths, x, edge_index)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        warm_up()
        self.mark = Watermark.set()

    def epoch(self) -> float:
        """One whole training step; returns the loss before it."""
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(*self.inputs), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, epochs: int) -> Message:
        """Seconds and loss of each epoch, and the memory in bytes above that before training."""
        seconds: list[float] = []
        losses: list[float] = []
        for _ in range(epochs):
            start = time.perf_counter()
            losses.append(self.epoch())
            seconds.append(time.perf_counter() - start)
        return {
            "seconds": seconds,
            "losses": losses,
            "memory": self.mark.above,
            "process_memory": self.mark.peak,
            "memory_exact": self.mark.exact,
        }


def main() -> None:
    contest: Contest | None = None

    def work(question: Message) -> Message:
        nonlocal contest
        if contest is None:
            contest = Contest(**question)
            return contest.train(WARM_UP)
        return contest.train(question["epochs"])

    serve(work)


if __name__ == "__main__":
    main()
