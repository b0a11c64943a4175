"""What tests run in processes: found there by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from gnnc.frontend.argo.worker import Worker


class Mean(torch.nn.Module):
    """A layer that takes the mean over in-neighbours, then a linear one; one parameter that nobody
    uses."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2 * features, classes)
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor, edges: torch.Tensor, seeds: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])
        degree = torch.bincount(edges[1], minlength=len(x)).clamp(min=1)
        return self.linear(torch.cat([x, total / degree[:, None]], 1)[seeds])


def graph(nodes: int = 40, features: int = 5, classes: int = 3) -> tuple[torch.Tensor, ...]:
    random = torch.Generator().manual_seed(3)
    x = torch.randn(nodes, features, generator=random, dtype=torch.float64)
    edges = torch.randint(nodes, (2, 4 * nodes), generator=random)
    return x, edges, torch.randint(classes, (nodes,), generator=random)


def gradients(x: Any, edges: Any, y: Any, steps: int, *, worker: Worker) -> dict[str, Any]:
    """Of so many steps with plain gradient descent; the parameters in the end as well."""
    torch.manual_seed(worker.rank)
    model = Mean(x.shape[1], 3).double()
    worker.same(model)
    torch.manual_seed(0)
    model.linear.reset_parameters()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shares = worker.shares(len(x), 16, seed=7)
    found: list[torch.Tensor] = []
    for _ in worker.epochs():
        for seeds in worker.steps(shares):
            optimizer.zero_grad()
            out = model(x, edges, torch.tensor(seeds))
            losses = F.cross_entropy(out, y[seeds], reduction="none")
            worker.mean(losses).backward()
            worker.sum_gradients(model)
            grad = model.linear.weight.grad
            assert grad is not None and model.unused.grad is None
            found.append(grad.clone())
            optimizer.step()
            if len(found) == steps:
                return {"grads": found, "weight": model.linear.weight.detach().clone()}
    return {"grads": found, "weight": model.linear.weight.detach().clone()}


def broadcast(*, worker: Worker) -> float:
    """Each process starts with a model of its own; process 0's counts."""
    model = torch.nn.Linear(1, 1)
    with torch.no_grad():
        model.weight.fill_(1.0 + worker.rank)
    worker.same(model)
    return float(worker.mean(model.weight.reshape(-1)).item() * worker.size)


def share(
    x: torch.Tensor, array: NDArray[Any], few: Any, model: torch.nn.Module, *, worker: Worker
) -> bool:
    """Each process writes into the tensor and the array, which all see, and into its own model and
    small array, which none sees."""
    x[worker.rank] = array[worker.rank] = worker.rank + 1
    few += worker.rank
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(worker.rank)
    worker.mean(torch.zeros(1))  # waits for the others
    own = not few.any() and all(not bool(p.any()) for p in model.parameters())
    return own and x.tolist() == array[:2].tolist() == [1.0, 2.0]


def cores(*, worker: Worker) -> Any:
    """The cores of all its threads, the number of torch's, and the cores of a sampler."""
    torch.ones(400, 400).mm(torch.ones(400, 400))  # starts a team
    mine = sorted({tuple(sorted(os.sched_getaffinity(t))) for t in threads()})
    worker.bind_sampler()
    samples = sorted(os.sched_getaffinity(0))
    return mine, torch.get_num_threads(), os.environ["OMP_NUM_THREADS"], samples


def threads() -> list[int]:
    return [int(t.name) for t in Path("/proc/self/task").iterdir()]


def drawn(*, worker: Worker) -> tuple[int, float]:
    """The process, and a random number."""
    return os.getpid(), float(torch.rand(()))


def tells(*, worker: Worker) -> None:
    worker.tell((worker.rank, "here"))


def sleep(by_processes: dict[int, float], *, worker: Worker) -> int:
    """Steps that take as long as said; what is returned counts those of the real training."""
    done = 0
    for _ in worker.epochs():
        for _ in worker.steps(range(40)):
            time.sleep(by_processes[worker.size])
            done += 1
    return done


def no_steps(*, worker: Worker) -> None:
    """Forgets `worker.steps`."""


def fail(how: str, folder: str, *, worker: Worker) -> None:
    """One raises, or is killed, while the other waits for it."""
    (Path(folder) / f"process-{os.getpid()}").touch()
    if worker.rank == worker.size - 1:
        time.sleep(0.2)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "raised":
            raise ZeroDivisionError("on purpose")
        if how == "exit":
            os._exit(3)
    worker.mean(torch.zeros(1))
    time.sleep(600)


def compiled(x: Any, edges: Any, y: Any, whether: bool, *, worker: Worker) -> list[Any]:
    """The gradients of a model of PyG after each of a few steps."""
    from torch_geometric.nn import GraphSAGE

    import gnnc

    torch.manual_seed(0)
    model: Any = GraphSAGE(x.shape[1], 8, 2, 3)
    model = gnnc.compile(model) if whether else model
    worker.same(model)
    found: list[Any] = []
    for seeds in worker.steps(worker.shares(len(x), 16, drop_last=True)):
        model.zero_grad()
        losses = F.cross_entropy(model(x, edges)[seeds], y[seeds], reduction="none")
        worker.mean(losses).backward()
        worker.sum_gradients(model)
        found.append([p.grad.clone() for p in model.parameters()])
    return found


def stepped(loader: Any, *, worker: Worker) -> Any:
    """An epoch of `worker.train_step`: the losses, the parameters, and what ran in torch. Processes
    whose parameters differ in a bit fail."""
    import hashlib

    from torch_geometric.nn import GraphSAGE

    import gnnc

    torch.manual_seed(worker.rank)
    model: Any = GraphSAGE(loader.data.x.shape[1], 8, 2, 3)
    worker.same(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss(x: Any, edges: Any, roots: Any, y: Any, count: Any) -> Any:
        return F.cross_entropy(model(x, edges)[roots], y, reduction="sum") / count

    step = worker.train_step(loss, optimizer)
    losses: list[float] = []
    for batch in worker.steps(worker.loader(loader)):
        count = worker.sum(torch.tensor(float(len(batch.y))))
        losses.append(step(batch.x, batch.edge_index, batch.root_n_id, batch.y, count).item())
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    worker.communicator.agree("parameters", hashlib.sha256(flat.numpy()).hexdigest())
    return losses, flat, gnnc.explain(step).fallbacks


def sampled(data: Any, loader: Any, whether: bool, *, worker: Worker) -> list[Any]:
    """The gradients of GraphSAGE on two epochs of a loader of `gnnc.loader`; what is not shared
    fails."""
    from torch_geometric.nn import GraphSAGE

    import gnnc

    edges = loader._names.graph.relations[0]
    for array in (data.x.numpy(), loader.data.x.numpy(), edges.indices, edges.indptr):
        assert is_shared(array.ctypes.data)
    torch.manual_seed(0)
    model: Any = GraphSAGE(data.x.shape[1], 8, 2, 3)
    model = gnnc.compile(model) if whether else model
    found: list[Any] = []
    mine = worker.loader(loader)
    for _ in worker.epochs():
        for batch in worker.steps(mine):
            model.zero_grad()
            out = model(batch.x, batch.edge_index)[batch.root_n_id]
            worker.mean(F.cross_entropy(out, batch.y, reduction="none")).backward()
            worker.sum_gradients(model)
            found.append([p.grad.clone() for p in model.parameters()])
    return found


def flows(loader: Any, whether: bool, *, worker: Worker) -> list[Any]:
    """The gradients of GraphSAGE on the message-flow blocks of a loader of `gnnc.dgl`."""
    import gnnc
    from gnnc.dgl.nn import SAGEConv

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = SAGEConv(5, 8, "mean"), SAGEConv(8, 3, "mean")

        def forward(self, blocks: Any, x: torch.Tensor) -> torch.Tensor:
            return self.second(blocks[1], self.first(blocks[0], x).relu())

    torch.manual_seed(0)
    model: Any = Net()
    model = gnnc.compile(model) if whether else model
    found: list[Any] = []
    for _, seeds, blocks in worker.steps(worker.loader(loader)):
        model.zero_grad()
        out = model(blocks, blocks[0].srcdata["x"])
        worker.mean(F.cross_entropy(out, seeds % 3, reduction="none")).backward()
        worker.sum_gradients(model)
        found.append([p.grad.clone() for p in model.parameters()])
    return found


def is_shared(address: int) -> bool:
    """Whether memory of this process is in a mapping that others may have too."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, kind = line.split()[:2]
        first, last = (int(end, 16) for end in where.split("-"))
        if first <= address < last:
            return kind.endswith("s")
    raise AssertionError("no memory of this process")


class Rows(torch.utils.data.Dataset[Any]):
    """Each row says the process that loaded it, and the core mask of that."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> tuple[int, int, tuple[int, ...]]:
        (Path(self.folder) / f"process-{os.getpid()}").touch()
        return index, os.getpid(), tuple(sorted(os.sched_getaffinity(0)))


def loaded(folder: str, killed: bool, *, worker: Worker) -> list[Any]:
    """Loads by torch's loader with as many workers as cores to sample; what they said."""
    loader = torch.utils.data.DataLoader(
        Rows(folder),
        batch_sampler=worker.shares(400, 8),
        collate_fn=list,
        **worker.loader_options(),
    )
    found: list[Any] = []
    for batch in worker.steps(loader):
        found += batch
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)
    return [found, os.getpid(), sorted(os.sched_getaffinity(0))]
