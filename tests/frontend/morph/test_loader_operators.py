"""A loader's batches, prepared by both sides, train as a loop over the loader does."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import SAGEConv

import gnnc
from gnnc import morph
from gnnc.frontend.torch.loader import NeighborLoader, morph_operators, undone

BATCHES = 6
TIMES = morph.Times(0.002, 0.001, 0.002, 0.002, 2)


@pytest.fixture(scope="module")
def data() -> Data:
    random = torch.Generator().manual_seed(0)
    return Data(
        x=torch.rand(300, 8, generator=random),
        y=torch.randint(3, (300,), generator=random),
        edge_index=torch.randint(300, (2, 2000), generator=random),
    )


def loader_of(data: Data, **options) -> NeighborLoader:
    return NeighborLoader(data, [4, 3], batch_size=50, shuffle=True, seed=5, **options)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(8, 8), SAGEConv(8, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        x = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(x, edge_index)


class Training:
    """A model, its optimizer and its step, from the same weights each time."""

    def __init__(self, compiled: bool = False):
        torch.manual_seed(7)
        self.model = gnnc.compile(Net()) if compiled else Net()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def step(self, batch: Data) -> float:
        self.optimizer.zero_grad()
        out = self.model(batch.x, batch.edge_index)[: batch.batch_size]
        loss = F.cross_entropy(out, batch.y[: batch.batch_size])
        loss.backward()
        self.optimizer.step()
        return loss.item()


def looped(data: Data, epochs: int, compiled: bool = False) -> tuple[list[list[float]], Training]:
    training, loader = Training(compiled), loader_of(data)
    return [[training.step(batch) for batch in loader] for _ in range(epochs)], training


def same_weights(a: Training, b: Training) -> bool:
    pairs = zip(a.model.parameters(), b.model.parameters(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("on_cpu", [0, 3, BATCHES])
def test_losses_are_those_of_a_loop_over_the_loader(data, on_cpu, workers):
    expected, reference = looped(data, 2)
    training, loader, link = Training(), loader_of(data), morph.RateLimitedLink(1e9)
    schedule = morph.Scheduler(TIMES).schedule(morph.Split(on_cpu, BATCHES - on_cpu))
    for epoch in range(2):
        operators = morph_operators(loader, training.step, link, epoch=epoch)
        run = morph.Executor(operators, workers=workers, checksum=morph.checksum).run(schedule)
        assert list(run.results) == expected[epoch]
    assert same_weights(training, reference)


@pytest.mark.long
def test_a_compiled_model_is_profiled_split_planned_and_trained(data):
    expected, reference = looped(data, 3, compiled=True)
    training, loader, link = Training(compiled=True), loader_of(data), morph.RateLimitedLink(1e8)
    operators = partial(morph_operators, loader, training.step, link)
    with undone(training.model, training.optimizer):
        times = morph.Profiler(operators(), workers=2).measure(range(len(loader)))
    scheduler, partitioner = morph.Scheduler(times), morph.Partitioner(times)
    runs: list[morph.Run] = []

    def epoch(split: morph.Split) -> morph.Feedback:
        executor = morph.Executor(operators(epoch=len(runs)), workers=2, checksum=morph.checksum)
        runs.append(executor.run(scheduler.schedule(split)))
        return runs[-1].feedback()

    split, _ = partitioner.refine(partitioner.initial(len(loader)), epoch, rounds=2)
    while len(runs) < 3:
        epoch(split)
    assert [list(run.results) for run in runs] == expected
    assert same_weights(training, reference)
    assert "accelerator  busy" in morph.report(runs[-1].trace)


def test_measured_steps_are_undone(data):
    expected, _ = looped(data, 1)
    training, loader, link = Training(), loader_of(data), morph.RateLimitedLink(1e9)
    operators = morph_operators(loader, training.step, link)
    with undone(training.model, training.optimizer):
        times = morph.Profiler(operators, workers=2, trials=2).measure(range(len(loader)))
    assert min(times.cpu, times.move, times.accelerator, times.train) > 0
    run = morph.Executor(operators).run(morph.Scheduler(times).best(len(loader)))
    assert list(run.results) == expected[0]
    with pytest.raises(TypeError, match="trained: a function has no state_dict"):
        with undone(looped):
            pass


def test_both_sides_batches_go_over_the_link(data):
    loader = loader_of(data)
    link = morph.RateLimitedLink(1e12)
    operators = morph_operators(loader, lambda batch: None, link)
    moved = 0
    for step, batch in enumerate(loader):
        for side in (morph.CPU, morph.ACCELERATOR_AND_LINK):
            assert morph.checksum(operators.get("prepare", side)(step)) == morph.checksum(batch)
        moved += sum(x.nbytes for x in batch.to_dict().values() if isinstance(x, torch.Tensor))
    assert link.bytes_moved == moved
    there = operators.get("move", morph.LINK)(batch)
    assert morph.checksum(there) == morph.checksum(batch)
    there.x[0] += 1
    assert morph.checksum(there) != morph.checksum(batch)


def test_cached_rows_do_not_go_over_the_link(data):
    indptr = torch.zeros(301, dtype=torch.int64)
    counts = torch.bincount(data.edge_index[0], minlength=300)
    torch.cumsum(counts, 0, out=indptr[1:])
    link = morph.RateLimitedLink(1e12)
    cache = morph.DegreeCache(
        indptr.numpy(),
        data.edge_index[1].numpy(),
        data.x.numpy(),
        150 * 32,
        adjacency_share=0,
        over_link=link,
    )
    seen: list[int] = []
    loader = loader_of(data, transform=lambda batch: seen.append(batch.x.shape[1]) or batch)
    cached = morph_operators(loader, lambda batch: None, link, cache=cache)
    rows = 0
    for step, batch in enumerate(loader):
        found = cached.get("prepare", morph.ACCELERATOR_AND_LINK)(step)
        for name in ("x", "y", "n_id", "edge_index", "batch_size"):
            same = found[name] == batch[name]
            assert same if isinstance(same, bool) else same.all()
        rows += batch.num_nodes
    assert seen == [8] * 2 * len(loader)
    assert cache.features.hits + cache.features.misses == rows
    assert cache.features.rate > 0.5
    full = morph.RateLimitedLink(1e12)
    uncached = morph_operators(loader, lambda batch: None, full)
    for step in range(len(loader)):
        uncached.get("prepare", morph.ACCELERATOR_AND_LINK)(step)
    assert full.bytes_moved - link.bytes_moved == cache.features.bytes_saved


def test_a_cache_needs_features_to_hold(data):
    hetero = HeteroData()
    hetero["a"].x = data.x
    hetero["a", "to", "a"].edge_index = data.edge_index
    loader = NeighborLoader(hetero, [2], "a", batch_size=50)
    cache = morph.DegreeCache(*(torch.zeros(n).long().numpy() for n in (2, 0, 1)), 0)
    with pytest.raises(TypeError, match="cache: the loader's data has to be a Data with x"):
        morph_operators(loader, lambda batch: None, morph.RateLimitedLink(1e9), cache=cache)


def test_a_batch_that_is_written_over_while_it_waits_is_found(data):
    buffer = torch.zeros(300, 8)

    def into_one_buffer(batch: Data) -> Data:
        batch.x = buffer[: batch.num_nodes].copy_(batch.x)
        return batch

    loader = loader_of(data)
    operators = morph_operators(loader, lambda batch: None, into_one_buffer)
    prepare = [morph.Operation(morph.Phase.PREPARE, morph.ACCELERATOR_AND_LINK, i) for i in (0, 1)]
    train = [morph.Operation(morph.Phase.TRAIN, morph.ACCELERATOR, i) for i in (0, 1)]
    schedule = morph.Schedule((*prepare, *train), morph.Buffers())
    with pytest.raises(morph.BatchChanged, match="batch 0 changed"):
        morph.Executor(operators, checksum=morph.checksum).run(schedule)
