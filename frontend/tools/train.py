"""The child process of `gnnc train`: trains one model on one graph, eagerly or compiled.

frontend/tools/compare.py starts one child a way and has them take turns, seed by seed. A question
has the `settings` of a training, where its checkpoint is (`checkpoint`: the file, or None; `every`:
how many epochs apart), its `tuning`, or None, and how many `predictions` of the frozen model are
timed behind it. `{"check": [..]}` of such questions reads all the checkpoints that there are, so
that a bad one is found before anything is trained.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from ..argo.worker import Worker
from . import checkpoint, tuned_training
from .batch_training import BatchTraining, loader
from .children import Message, Refused, Tell, serve_with_progress
from .datasets import NodeTask, citation, split
from .models import warm_up_once
from .training import Settings, Training
from .training_run import Kept, Run
from .tuned_training import Tuning, tuning_of


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


def _task(settings: Settings) -> NodeTask:
    return load(settings.dataset, settings.root, settings.nodes)


def check(settings: Settings, kept: Kept) -> None:
    """Reads the checkpoint where there is one; raises Refused where it is not of this training."""
    if kept.file.exists():
        checkpoint.read(kept.file, settings, _task(settings).checksum)


def train(
    settings: Settings,
    kept: Kept | None,
    tell: Tell,
    tuning: Tuning | None = None,
    predictions: int = 0,
) -> Message:
    """Trains one model, on from its checkpoint where there is one; with `tuning` in the processes
    that a tuner finds, and then without predictions. Returns what `Run.finished` does, with
    `tuning` also what it found."""
    task = _task(settings)
    warm_up_once(settings.mode != "eager")
    if tuning is not None:
        return tuned_training.train(settings, task, kept, tell, tuning)
    run = Run(settings, task, kept, tell, lambda: _training(settings, task))
    return run.finished(predictions)


def _training(settings: Settings, task: NodeTask) -> Training:
    if settings.batch_size is None:
        return Training(settings, task)
    return BatchTraining(settings, task, loader(settings, task), Worker.alone())


def answer(question: Message, tell: Tell) -> Message:
    """What the parent is answered."""
    if "check" in question:
        for settings, kept in map(_asked, question["check"]):
            assert kept is not None
            check(settings, kept)
        return {}
    return train(*_asked(question), tell, tuning_of(question["tuning"]), question["predictions"])


def _asked(question: Message) -> tuple[Settings, Kept | None]:
    file = question["checkpoint"]
    kept = None if file is None else Kept(Path(file), question["every"])
    return Settings(**question["settings"]), kept


if __name__ == "__main__":
    serve_with_progress(answer)
