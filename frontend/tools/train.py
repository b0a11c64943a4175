"""The child process of `gnnc train`: trains one model on one graph, eagerly or compiled.

frontend/tools/compare.py starts one child a way and has them take turns, seed by seed. A question
is `Settings` with the seed and the way; the answer is what `train` returns.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from .children import Message, Refused, serve
from .datasets import NodeTask, citation, split
from .memory import Watermark
from .models import Net, warm_up


@dataclass(frozen=True)
class Settings:
    """One training: `dataset` is "default" or `<class of torch_geometric.datasets>:<name>`."""

    model: str
    dataset: str
    root: str
    epochs: int
    hidden: int
    layers: int
    dropout: float
    lr: float
    weight_decay: float
    nodes: int
    seed: int
    compiled: bool


@functools.cache
def load(dataset: str, root: str, nodes: int) -> NodeTask:
    """The graph that `--dataset` names; `nodes` is the size of the generated one.

    PyG keeps what it makes of the raw files in `root`, and downloads those that are not there.
    Raises Refused for a name that says no data set, or one with features we cannot train on.
    """
    if dataset == "default":
        return citation(nodes, links=nodes * 5278 // 2708)
    kind, _, name = dataset.partition(":")
    import torch_geometric.datasets
    from torch_geometric.transforms import NormalizeFeatures

    cls = getattr(torch_geometric.datasets, kind, None)
    if cls is None:
        raise Refused(f"torch_geometric.datasets has no {kind!r}; write --dataset CLASS:NAME")
    options: dict[str, Any] = {"name": name} if name else {}
    data = cls(root=root, **options)[0]
    if getattr(data, "edge_index", None) is None or data.x is None or data.x.is_sparse_csr:
        raise Refused(f"{dataset} is not one graph with an edge_index and dense features x")
    data = NormalizeFeatures()(data)
    y = data.y.numpy()
    classes = int(y.max()) + 1
    if getattr(data, "train_mask", None) is None:
        masks = split(y, classes)
    else:
        # Some data sets bring several splits, as columns: the first is used.
        stored = (data.train_mask, data.val_mask, data.test_mask)
        masks = tuple(m.view(len(y), -1)[:, 0].numpy() for m in stored)
    return NodeTask(dataset, data.x.numpy(), data.edge_index.numpy(), y, classes, *masks)


def train(settings: Settings) -> Message:
    """Trains one model; returns its accuracy, its times and its memory.

    `accuracy` is that on the test nodes at the epoch that is best on the validation nodes;
    `epoch_seconds` has one entry for each epoch (forward, loss, backward, Adam step; evaluation
    is not in it); `memory` is the highest resident memory in bytes above that before the model
    was made. Compiled models add `compile_seconds`, `kernels` and `fallbacks`.
    """
    task = load(settings.dataset, settings.root, settings.nodes)
    x, edge_index, y = (torch.from_numpy(a) for a in (task.x, task.edge_index, task.y))
    masks = [torch.from_numpy(m) for m in (task.train, task.validation, task.test)]
    compile_ = _compiler() if settings.compiled else None
    _warm_up_once(compile_)
    mark = Watermark.set()

    torch.manual_seed(settings.seed)
    inner = [settings.hidden] * (settings.layers - 1)
    model = Net(settings.model, [x.shape[1], *inner, task.classes], settings.dropout)
    if compile_ is not None:
        model = compile_(model)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
    )
    seconds: list[float] = []
    best = (-1.0, 0.0)
    label = f"{'compiled' if settings.compiled else 'eager':8} seed {settings.seed}"
    looks: dict[str, Any] = {"leave": False, "unit": "epoch", "dynamic_ncols": True}
    with tqdm(range(settings.epochs), label, disable=None, **looks) as bar:  # None: on terminals
        for _ in bar:
            start = time.perf_counter()
            model.train()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x, edge_index)[masks[0]], y[masks[0]])
            loss.backward()
            optimizer.step()
            seconds.append(time.perf_counter() - start)
            best = max(best, _accuracies(model, x, edge_index, y, masks[1:]))
            bar.set_postfix(loss=f"{loss.item():.3f}", test=f"{best[1]:.3f}")

    answer: Message = {
        "accuracy": best[1],
        "loss": loss.item(),
        "epoch_seconds": seconds,
        "memory": mark.above,
        "memory_exact": mark.exact,
        "graph": {
            "name": task.name,
            "nodes": x.shape[0],
            "edges": edge_index.shape[1],
            "features": x.shape[1],
            "classes": task.classes,
        },
    }
    return answer | (_explanation(model) if settings.compiled else {})


def _accuracies(
    model: torch.nn.Module, x: Tensor, edge_index: Tensor, y: Tensor, masks: list[Tensor]
) -> tuple[float, float]:
    model.eval()
    with torch.no_grad():
        right = model(x, edge_index).argmax(1) == y
    validation, test = (right[m].float().mean().item() for m in masks)
    return validation, test


def _compiler() -> Any:
    import gnnc

    return gnnc.compile


_warm_up_once = functools.cache(warm_up)


def _explanation(model: torch.nn.Module) -> Message:
    import gnnc

    told = gnnc.explain(model)
    return {
        "compile_seconds": told.compile_seconds,
        "kernels": list(told.kernels),
        "fallbacks": [str(f) for f in told.fallbacks],
    }


if __name__ == "__main__":
    serve(lambda question: train(Settings(**question)))
