"""What users do with compiled modules besides training them: modes, copies, hooks, decorators,
reports, and more processes and threads."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv

import gnnc
from gnnc.runtime.cpu import threads

from .models import BY_NAME, CLASSES, WIDTH, Net, Stack, close, graph, pair

# ---------------------------------------------------------------- modules


def test_train_and_eval() -> None:
    def make() -> nn.Module:
        return Stack([GCNConv(WIDTH, 8), GCNConv(8, CLASSES)], norms=[nn.BatchNorm1d(8)])

    eager, model = pair(make=make)
    x, edge_index = graph()
    for training in (True, False, True, False, False):
        eager.train(training), model.train(training)
        assert close(eager(x, edge_index), model(x, edge_index))
        for a, b in zip(eager.buffers(), model.buffers(), strict=True):
            assert torch.allclose(a, b)
    assert gnnc.explain(model).graphs == 2


def test_batch_norm_refuses_one_row_as_torch_does() -> None:
    def make() -> nn.Module:
        return Stack([GCNConv(WIDTH, 8), GCNConv(8, CLASSES)], norms=[nn.BatchNorm1d(8)])

    eager, model = pair(make=make)
    for first in (False, True):
        if first:
            model(*graph())
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            model(torch.randn(1, WIDTH), torch.zeros(2, 1, dtype=torch.long))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        eager(torch.randn(1, WIDTH), torch.zeros(2, 1, dtype=torch.long))


def test_state_dict_copy_and_pickle() -> None:
    eager, model = pair()
    x, edge_index = graph()
    want = eager(x, edge_index)
    model(x, edge_index)
    assert list(model.state_dict()) == list(eager.state_dict())
    assert close(copy.deepcopy(model)(x, edge_index), want)
    again = pickle.loads(pickle.dumps(model))
    assert close(again(x, edge_index), want)
    assert close(gnnc.compile(again)(x, edge_index), want)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.second.bias.add_(1)
    assert close(other(x, edge_index), want + 1)
    assert close(model(x, edge_index), want)
    gnnc.compile(other)
    assert close(other(x, edge_index), want + 1)
    with torch.no_grad():
        for p in eager.parameters():
            p.add_(0.1)
    model.load_state_dict(eager.state_dict())
    assert close(model(x, edge_index), eager(x, edge_index))
    model.double()
    assert close(model(x.double(), edge_index).float(), eager(x, edge_index))


@pytest.mark.filterwarnings(  # Dynamo asks for the gradient of what a hook receives
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"
)
def test_hooks_run() -> None:
    eager, model = pair()
    x, edge_index = graph()
    seen: list[str] = []
    model.register_forward_pre_hook(lambda m, args: seen.append("pre"))
    model.register_forward_hook(lambda m, args, y: seen.append("post"))
    model.first.register_forward_hook(lambda m, args, y: 2 * y)
    eager.first.register_forward_hook(lambda m, args, y: 2 * y)
    y = model(x, edge_index)
    assert seen == ["pre", "post"]
    assert close(y, eager(x, edge_index))
    grads: list[Tensor] = []
    model.first.lin.weight.register_hook(grads.append)
    y.sum().backward()
    assert len(grads) == 1


def test_what_records_operations_records_those_of_torch() -> None:
    eager, model = pair()
    x, edge_index = graph()
    want = eager(x, edge_index)
    traced = torch.jit.trace(model, (x, edge_index))
    assert close(want, traced(x, edge_index))
    square = gnnc.compile(lambda x: x * x)
    recorded = torch.fx.symbolic_trace(nn.Sequential(Calling(square)))
    assert close(x * x + 1, recorded(x))
    assert "while torch.jit or torch.fx records" in str(gnnc.explain(model))


class Calling(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x) + 1


@pytest.mark.parametrize("hooked", [False, True])
def test_modules_of_torchs_own(hooked: bool) -> None:
    """Dynamo passes over the frames of torch's files: these ran in torch without a word."""

    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.LayerNorm(8))

    eager, model = pair(make=make)
    for m in (eager, model):
        if hooked:
            m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
            m.register_forward_hook(lambda module, args, out: out * 2)
    for rows in (5, 9):
        x = torch.randn(rows, WIDTH)
        out, want = model(x), eager(x)
        weights = torch.randn(8)  # the plain sum of a norm has no gradient but rounding
        (out * weights).sum().backward(), (want * weights).sum().backward()
        assert close(out, want)
        for a, b in zip(model.parameters(), eager.parameters(), strict=True):
            assert a.grad is not None and b.grad is not None and close(a.grad, b.grad)
    report = gnnc.explain(model)
    assert report.graphs == 1 and report.kernels and report.fallbacks == []


def test_as_a_decorator() -> None:
    @gnnc.compile
    class Whole(Net):
        pass

    @gnnc.compile(fullgraph=True)
    class Strict(Net):
        pass

    class Child(Whole):  # type: ignore[misc, valid-type]
        pass

    x, edge_index = graph()
    for cls in (Whole, Strict):
        model = cls()
        y = model(x, edge_index)
        assert gnnc.explain(model).graphs == 1
        assert close(y, nn.Module.__call__(copy.deepcopy(model), x, edge_index))
    with pytest.raises(ValueError, match="was not compiled"):
        gnnc.explain(Child())

    @gnnc.compile
    def spread(x: Tensor, edge_index: Tensor, *, scale: float = 1.0) -> Tensor:
        """Doc."""
        src, dst = edge_index
        return torch.zeros_like(x).index_add(0, dst, scale * x[src])

    assert spread.__name__ == "spread" and spread.__doc__ == "Doc."
    src, dst = edge_index
    want = torch.zeros_like(x).index_add(0, dst, 2 * x[src])
    assert close(spread(x, edge_index, scale=2.0), want)
    assert gnnc.explain(spread).graphs == 1
    with pytest.raises(TypeError, match="module, a module class or a function"):
        gnnc.compile(3)
    with pytest.raises(TypeError, match="no_such_option"):
        gnnc.compile(Net(), no_such_option=1)


@pytest.mark.long
def test_many_modules_of_one_class() -> None:
    """Dynamo's limit on recompilations is for each module."""
    x, edge_index = graph()
    with torch.no_grad():
        for _ in range(70):
            model = gnnc.compile(SAGEConv(WIDTH, 2))
            model(x, edge_index)
            assert gnnc.explain(model).graphs == 1


def test_cached_gcn() -> None:
    torch.manual_seed(0)
    eager = GCNConv(WIDTH, CLASSES, cached=True)
    model = gnnc.compile(copy.deepcopy(eager))
    x, edge_index = graph()
    for _ in range(3):
        for m in (eager, model):
            m.zero_grad()
            m(x, edge_index).square().sum().backward()
        assert close(model(x, edge_index), eager(x, edge_index))
        assert close(model.lin.weight.grad, eager.lin.weight.grad)


# ---------------------------------------------------------------- reports and fallbacks


class Partly(nn.Module):
    """Compilable layers around one op that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(WIDTH, 16), SAGEConv(3, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x, edge_index).relu()
        h = torch.topk(h, 3, dim=1).values
        return self.second(h, edge_index)


def test_an_unsupported_op_runs_in_torch_and_is_reported() -> None:
    eager, model = pair(make=Partly)
    for k in range(3):
        x, edge_index = graph(k, 20 + k)
        assert close(model(x, edge_index), eager(x, edge_index))
    model.zero_grad(), eager.zero_grad()
    for m in (eager, model):
        m(x, edge_index).square().sum().backward()
    for p, q in zip(eager.parameters(), model.parameters(), strict=True):
        assert close(p.grad, q.grad)
    report = gnnc.explain(model)
    assert len(report.fallbacks) == 1
    assert "topk" in report.fallbacks[0]
    assert Path(__file__).name in report.fallbacks[0]
    assert report.kernels
    assert "topk" in str(report)


class Stacked(nn.Module):
    """A sum for each of three kinds of edges, in one tensor whose rows are not in front."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, WIDTH, 4))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        group = edge_index.sum(0) % 3 * x.size(0) + edge_index[1]
        sums = x.new_zeros(3 * x.size(0), WIDTH).index_add(0, group, x[edge_index[0]])
        return torch.einsum("kni,kio->no", sums.view(3, -1, WIDTH), self.weight)


def test_parts_of_a_graph_are_compiled_once_for_all_sizes() -> None:
    """What counts rows is known from the whole graph; a part may not show it."""
    eager = Stacked()
    model = gnnc.compile(copy.deepcopy(eager))
    for k in range(4):
        x, edge_index = graph(k, 20 + k)
        assert close(model(x, edge_index), eager(x, edge_index))
    assert any("view" in f for f in gnnc.explain(model).fallbacks)
    assert gnnc.explain(model).graphs == 2


def test_fullgraph_raises_instead() -> None:
    model = gnnc.compile(Partly(), fullgraph=True)
    with pytest.raises(Exception, match="topk"):
        model(*graph())


def test_explain() -> None:
    _, model = pair()
    assert gnnc.explain(model).graphs == 0
    model(*graph()).sum().backward()
    report = gnnc.explain(model)
    assert report.graphs == 1
    assert report.compile_seconds > 0
    assert all(Path(s).exists() and Path(s).with_suffix(".c").exists() for s in report.sources)
    text = str(report)
    assert all(k in text for k in report.kernels)
    assert "nothing runs in torch" in text
    with pytest.raises(ValueError, match="was not compiled"):
        gnnc.explain(Net())


# ---------------------------------------------------------------- processes and threads


def test_the_number_of_threads_is_torchs() -> None:
    before = torch.get_num_threads()
    try:
        for count in (3, 1):
            torch.set_num_threads(count)
            assert threads.num_threads() == count
    finally:
        torch.set_num_threads(before)


def test_numbers_do_not_depend_on_the_number_of_threads() -> None:
    model = gnnc.compile(BY_NAME["gcn-batchnorm"].model(WIDTH, CLASSES, torch.float32))
    x, edge_index = graph(3, 3000, 20000)
    edge_index[1, ::2] = 7
    results = []
    try:
        for count in (1, 2):
            threads.set_num_threads(count)
            model.zero_grad()
            z = x.clone().requires_grad_()
            y = model(z, edge_index)
            y.square().sum().backward()
            results.append([y, z.grad, *(p.grad.clone() for p in model.parameters())])
    finally:
        threads.set_num_threads(None)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


PROGRAM = """
import torch, gnnc
from torch_geometric.nn import GCNConv
from gnnc.runtime.cpu import toolchain
torch.manual_seed(0)
model = gnnc.compile(GCNConv(5, 3))
x, e = torch.randn(9, 5), torch.randint(0, 9, (2, 20))
y = model(x, e)
y.sum().backward()
print(toolchain.stats().compiled, y.sum().item(), gnnc.explain(model).graphs)
"""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[dict[str, str]]:
    yield {**os.environ, "GNNC_CACHE": str(tmp_path / "cache")}


class Asking(nn.Module):
    """A layer whose numbers say what is done, so that its call is no one graph."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.conv(x, edge_index)
        return -h if h.sum() > 0 else h


@pytest.mark.parametrize("hooked", [False, True])
def test_a_compiled_model_may_be_called_first_behind_a_break_of_its_caller(hooked: bool) -> None:
    eager, model = pair(make=(lambda: Stack([GCNConv(WIDTH, CLASSES)])) if hooked else Asking)
    seen: list[str] = []
    if hooked:
        model.register_full_backward_hook(lambda *_: seen.append("hook"))
    double = gnnc.compile(lambda x, edge_index: 2 * model(x, edge_index))
    for seed in (0, 1):
        x, edge_index = graph(seed=seed)
        x.requires_grad_()
        got, want = double(x, edge_index), 2 * eager(x, edge_index)
        assert close(want, got)
        got.square().sum().backward(), want.square().sum().backward()
        for p, q in zip(eager.parameters(), model.parameters(), strict=True):
            assert p.grad is not None and q.grad is not None
            assert close(p.grad, q.grad)
    assert seen == ["hook", "hook"] * hooked
    # behind the break the model's own call runs, which is nothing to trace
    breaks = [f for f in gnnc.explain(double).fallbacks if "cannot trace" in f]
    assert all(__file__ in f or "backwards hooks" in f for f in breaks), breaks
    assert gnnc.explain(double).graphs <= 1


def test_another_process_finds_the_programs(fresh: dict[str, str]) -> None:
    answers = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM)],
            env=fresh,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "UserWarning" not in done.stderr
        answers.append(done.stdout.split())
    assert int(answers[0][0]) > 0
    assert int(answers[1][0]) == 0
    assert answers[0][1:] == answers[1][1:]


def test_without_a_compiler_models_run_in_torch(fresh: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM) + "print(gnnc.explain(model))"],
        env={**fresh, "PATH": "", "CC": "/no/such/compiler"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "runs in torch" in done.stdout
    assert "compiler" in done.stderr
