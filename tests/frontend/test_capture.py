"""Calls through Dynamo: limits, failures in the middle of a call, threads."""

import copy
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch import Tensor, fx, nn  # noqa: E402
from torch._dynamo.symbolic_convert import InstructionTranslator  # noqa: E402
from torch_geometric.nn import GCNConv  # noqa: E402
from torch_geometric.utils import negative_sampling  # noqa: E402

import gnnc  # noqa: E402
from gnnc.frontend.torch.capture import capture  # noqa: E402
from gnnc.frontend.torch.capture.capture import dynamo_compile  # noqa: E402


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def as_traced(gm: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    return gm.forward


def hit_dynamos_limit_at(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    limits = {"recompile_limit": limit, "fail_on_recompile_limit_hit": True}
    limited = torch._dynamo.config._make_closure_patcher(**limits)
    monkeypatch.setattr(capture, "_limited", limited)
    if "recompile_limit" in capture._LIMIT:
        monkeypatch.setitem(capture._LIMIT, "recompile_limit", limit)


def hit_limit_at(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(capture, "_VARIANTS", limit)


@pytest.mark.parametrize("hit", [hit_limit_at, hit_dynamos_limit_at])
def test_a_limit_is_told(monkeypatch: pytest.MonkeyPatch, hit: Any):
    """Beyond it calls run in torch, and those of before as they were compiled."""
    hit(monkeypatch, 2)
    told: list[str] = []
    made: list[fx.GraphModule] = []

    def scaled(x: Tensor, mode: str) -> Tensor:
        return x * len(mode)

    def noted(gm: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        made.append(gm)
        return gm.forward

    compiled = dynamo_compile(scaled, noted, notice=told.append)
    for mode in ("a", "bb", "ccc", "dddd", "a", "ccc"):
        assert torch.equal(compiled(torch.ones(3), mode), torch.full((3,), float(len(mode))))
    (message,) = told
    assert "variants" in message and "TORCH_LOGS=recompiles" in message
    assert len(made) == 2


def test_what_ran_is_not_repeated(monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []
    ran: list[str] = []

    def second(x: Tensor) -> Tensor:
        return (x + 1) * 2

    def first(x: Tensor) -> Tensor:
        y = x + 1
        torch._dynamo.graph_break()
        ran.append("first")
        return second(y)

    real = InstructionTranslator.run
    attempts: list[str] = []

    def run(self: InstructionTranslator) -> None:
        name = self.f_code.co_name
        if name == "second" or "resume" in name:
            attempts.append(name)
            raise KeyError("planted")
        real(self)

    monkeypatch.setattr(InstructionTranslator, "run", run)
    compiled = dynamo_compile(first, as_traced, notice=told.append)
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 6.0))
    assert ran == ["first"]
    assert len(attempts) == 2  # the rest of `first`, then `second`, each on its own
    broken, message = told
    assert "graph_break" in broken
    assert message.startswith("a part runs eagerly, Dynamo cannot trace it: ")
    assert "planted" in message


def test_graph_breaks_are_told(caplog: pytest.LogCaptureFixture):
    """Where, and why: a function with a loop is not compiled at all, others in two parts."""

    def halved(x: Tensor) -> Tensor:
        y = x + 1
        return y * 2 if (y > 1).any() else y

    def looped(x: Tensor) -> Tensor:
        for k in range(3):
            if (x > k).any():
                x = x + 1
        return x

    for f, around in ((halved, False), (looped, True)):
        told: list[str] = []
        compiled = dynamo_compile(f, as_traced, notice=told.append)
        assert torch.equal(compiled(torch.ones(3)), f(torch.ones(3)))
        assert any(f"{__file__}:" in m and "a branch on what a tensor holds" in m for m in told)
        assert any("the function around it" in m for m in told) == around
    assert not any("graph_breaks" in r.name for r in caplog.records)  # nobody has asked torch


def test_negative_samples_are_drawn_without_dynamo():
    """Which would take minutes for these, and hours for ten times as many."""

    def scores(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        drawn = negative_sampling(edge_index, x.size(0), method="dense")
        return (x[drawn[0]] * x[drawn[1]]).sum(-1)

    x, edges = torch.randn(300, 4), torch.randint(0, 300, (2, 9000))
    random.seed(0)
    want = scores(x, edges)
    random.seed(0)
    assert torch.allclose(gnnc.compile(scores)(x, edges), want, atol=1e-6)


@pytest.mark.parametrize("called", [True, False])
def test_threads_share_one_program(called: bool):
    """Not that of the main thread; where all call it first each makes one, or some more: what holds
    while one is traced holds for the others. That is a few for 300 calls."""
    conv = GCNConv(8, 4)
    model = gnnc.compile(copy.deepcopy(conv))
    x, edges = torch.randn(20, 8), torch.randint(0, 20, (2, 60))
    wanted = model(x, edges) if called else conv(x, edges)
    wrong: list[Any] = []

    def work() -> None:
        try:
            for _ in range(100):
                if not torch.allclose(model(x, edges), wanted, atol=1e-6):
                    wrong.append("values")
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
    assert gnnc.explain(model).graphs <= 12


def test_modules_that_run_eagerly_beside_a_call_stay_as_they_are():
    from torch_geometric.nn import RGCNConv

    from gnnc.frontend.torch.libraries import install
    from gnnc.frontend.torch.libraries.active import activated

    conv = RGCNConv(4, 3, 2)
    args = torch.randn(5, 4), torch.randint(0, 5, (2, 9)), torch.randint(0, 2, (9,))
    install()
    wanted = conv(*args)
    with activated:
        assert torch.equal(conv(*args), wanted)


def test_every_leaf_has_a_rule():
    """The importer knows no library: whoever imports the leaves has entered their rules. The mark
    of a step's loss is taken out of the graph before, edges are dropped, and pairs that are none
    drawn, before a program or in torch, and what is required is looked at beside it."""
    from gnnc.frontend.torch import returned  # noqa: F401
    from gnnc.frontend.torch.importer.rules import RULES
    from gnnc.frontend.torch.libraries.pyg import leaves  # noqa: F401

    names = torch._C._dispatch_get_all_op_names()
    found = {n.replace("::", ".") for n in names if n.startswith("gnnc::")}
    apart = {"gnnc.loss", "gnnc.dropout_edge", "gnnc.negative_sampling", "gnnc.require"}
    assert found - apart == {op for op in RULES if op.startswith("gnnc.")}


def test_instances_have_limits_of_their_own(monkeypatch: pytest.MonkeyPatch):
    hit_limit_at(monkeypatch, 2)
    told: list[str] = []

    class Scale(nn.Module):
        def __init__(self, k: int) -> None:
            super().__init__()
            self.k = k

        def forward(self, x: Tensor) -> Tensor:
            return x * self.k

    for k in range(5):
        compiled = dynamo_compile(Scale(k), as_traced, notice=told.append)
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), float(k)))
    assert told == []


def test_what_the_backend_raises_gets_out_of_the_middle_of_a_call():
    def second(x: Tensor) -> Tensor:
        return (x + 1) * 2

    def first(x: Tensor) -> Tensor:
        y = x - 1
        torch._dynamo.graph_break()
        return second(y)

    graphs = 0

    def backend(gm: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        nonlocal graphs
        graphs += 1
        if graphs > 1:
            raise LookupError("planted")
        return gm.forward

    with pytest.raises(LookupError, match="planted"):
        dynamo_compile(first, backend)(torch.ones(3))
    assert not torch._dynamo.config.suppress_errors


def test_what_torch_raises_while_it_is_traced_is_eagers_to_tell():
    def joined(x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, y])

    told: list[str] = []
    compiled = dynamo_compile(joined, as_traced, notice=told.append)
    with pytest.raises(RuntimeError, match="zero-dimensional"):  # an IndexError of fake tensors
        compiled(torch.tensor(1.0), torch.tensor(2.0))
    assert told


class Sums(nn.Module):
    """Raises where there are no edges."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        if e.size(1) == 0:
            raise ValueError("there are no edges")
        return self.lin(torch.zeros_like(x).index_add(0, e[1], x[e[0]])).relu()


@pytest.mark.parametrize("before", [0, 1])
def test_a_call_that_raises_spoils_no_other(before: int):
    """Neither what is compiled behind it nor what was before."""
    torch.manual_seed(0)
    model, x = Sums(), torch.randn(4, 3)
    edges, none = torch.randint(4, (2, 9)), torch.empty(2, 0, dtype=torch.int64)
    compiled = gnnc.compile(copy.deepcopy(model), profile=True)
    for _ in range(before):
        compiled(x, edges)
    for _ in range(2):
        with pytest.raises(ValueError, match="there are no edges"):
            compiled(x, none)
    torch.testing.assert_close(compiled(x, edges), model(x, edges))
    (program,) = gnnc.explain(compiled).programs
    laps = [sum(p.seconds) for p in program.program.phases.values() if p.seconds is not None]
    torch.testing.assert_close(compiled(x, edges), model(x, edges))
    later = [sum(p.seconds) for p in program.program.phases.values() if p.seconds is not None]
    assert sum(later) > sum(laps) > 0


def test_what_raises_again_and_again_is_given_up():
    def fails(x: Tensor) -> Tensor:
        raise ValueError("always")

    compiled = dynamo_compile(fails, as_traced, notice=lambda _: None)
    frames = torch._dynamo.utils.counters["frames"]
    for _ in range(40):
        with pytest.raises(ValueError, match="always"):
            compiled(torch.ones(3))
    before = frames["total"]
    with pytest.raises(ValueError, match="always"):
        compiled(torch.ones(3))
    assert frames["total"] == before


def test_a_step_whose_loss_raised_is_whole_in_other_calls():
    model, x = Sums(), torch.randn(4, 3)
    edges, none = torch.randint(4, (2, 9)), torch.empty(2, 0, dtype=torch.int64)
    step = gnnc.train_step(lambda *args: model(*args).sum(), torch.optim.SGD(model.parameters()))
    with pytest.raises(ValueError, match="there are no edges"):
        step(x, none)
    step(x, edges)
    assert step.in_parts is None


def test_functions_of_scipy_and_copies_of_dicts_are_traced():
    """As in the filters of BernNet, and in PyG's DeepGraphInfomax."""
    from scipy.special import comb

    def filtered(x: Tensor, **options: Tensor) -> Tensor:
        others = copy.copy(options)
        others["scale"] = others["scale"] * 2
        terms = [(comb(3, k) / 2**3) * x**k for k in range(4)]
        return sum(terms) * others["scale"] + options["scale"]

    told: list[str] = []
    compiled = dynamo_compile(filtered, as_traced, notice=told.append)
    x, scale = torch.randn(5), torch.randn(5)
    assert torch.allclose(compiled(x, scale=scale), filtered(x, scale=scale))
    assert told == []
