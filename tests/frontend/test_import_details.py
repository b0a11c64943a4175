"""Bindings, names, errors, partial graphs and random sites of imported programs."""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch import Tensor, fx, nn  # noqa: E402

import gnnc  # noqa: E402
from gnnc.frontend.torch.capture.capture import dynamo_compile, tensors_in  # noqa: E402
from gnnc.frontend.torch.capture.eager_calls import why_eager  # noqa: E402
from gnnc.frontend.torch.importer import (  # noqa: E402
    ImportCrash,
    Imported,
    Unsupported,
    import_graph,
    refusals,
    split_graph,
)
from gnnc.frontend.torch.importer.binding import DropoutKey, Number, Same  # noqa: E402
from gnnc.frontend.torch.importer.rules import RULES  # noqa: E402
from gnnc.frontend.torch.libraries.active import is_active  # noqa: E402
from gnnc.tests.frontend.evaluate import evaluate  # noqa: E402

from . import user_code as user  # noqa: E402
from . import zoo  # noqa: E402


@pytest.fixture(autouse=True)
def quiet():
    torch._dynamo.reset()
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def graphs_of(model: Any, *args: Any) -> list[fx.GraphModule]:
    """The graphs of one call."""
    found: list[fx.GraphModule] = []

    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        found.append(gm)
        return gm.forward

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamo_compile(model, backend)(*args)
    return found


def program_of(model: Any, *args: Any, needs_grad: list[bool] | None = None) -> Imported:
    found: list[Imported] = []

    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        found.append(import_graph(gm, needs_grad))
        return gm.forward

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamo_compile(model, backend)(*args)
    (program,) = found
    return program


def refusal(model: Any, *args: Any) -> str:
    messages: list[str] = []

    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        with pytest.raises(Unsupported) as error:
            import_graph(gm)
        messages.append(str(error.value))
        return gm.forward

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamo_compile(model, backend)(*args)
    (message,) = messages
    return message


# ---------------------------------------------------------------- bindings and names


def test_sets_are_named_from_their_use():
    program = program_of(*(zoo.ZOO["RGCN"][0](),), *zoo.typed(9, 20))
    by_name = {s.name: s for s in program.sets}
    assert set(by_name) == {"N", "g"}  # the relations are a constant number
    assert {m.label: m.codomain for m in by_name["g"].maps} == {"src": "N", "dst": "N"}
    text = str(program.module)
    assert ": !inter.set<R>" in text and "rel: R" in text
    assert "pairs (dst, rel) (rel, src)" in text or "pairs (rel, src) (dst, rel)" in text


def test_one_edge_set_serves_all_layers():
    text = str(program_of(zoo.ZOO["GCN2_ln"][0]().eval(), *zoo.plain(9, 20)).module)
    assert text.count("inter.filter") == text.count("inter.loops") == text.count("inter.union") == 1


def test_gcn_keeps_the_weight_of_an_old_loop():
    text = str(program_of(zoo.ZOO["GCNConv_ew"][0](), *zoo.weighted(9, 20)).module)
    for words in ("{no_loops}", "{remaining}", "[old]", "rsqrt", "{zero = 0.0}"):
        assert words in text


def test_maps_are_columns_of_their_tensor():
    program = program_of(user.flipped, *zoo.with_matrix(9, 20))
    (edges,) = (s for s in program.sets if s.maps)
    columns = {m.label: m.index for m in edges.maps}
    assert columns == {"src": (1,), "dst": (0,)}  # flipped
    assert {m.row_axis for m in edges.maps} == {1}


def test_gradients_wanted_by_the_caller():
    args = zoo.with_matrix(9, 20)
    program = program_of(user.attention, *args)
    assert not any(r.needs_grad for r in program.rows)
    wanted = ["w" in name for name in program.placeholders]
    program = program_of(user.attention, *args, needs_grad=wanted)
    assert [r.name for r in program.rows if r.needs_grad] == ["w"]
    with pytest.raises(ValueError, match="needs_grad has 1 entries"):
        program_of(user.attention, *args, needs_grad=[True])


def test_placeholders_and_numbers_may_be_returned():
    def model(x: Tensor, e: Tensor) -> tuple[Any, ...]:
        return user.sum_at(x[e[0]], e[1], x), e

    program = program_of(model, *zoo.plain(9, 20))
    assert not any(isinstance(o, Number) for o in program.outputs)
    assert len([o for o in program.outputs if isinstance(o, Same)]) <= 1


def test_lengths_that_have_to_agree_are_checked():
    x, e, w = zoo.weighted(9, 20)
    (graph,) = graphs_of(zoo.ZOO["GCNConv_ew"][0](), x, e, w)
    program = import_graph(graph)
    args: list[Any] = []
    for node in graph.graph.find_nodes(op="placeholder"):
        value = {"l_x_": x, "l_edge_index_": e, "l_edge_weight_": w[:7].clone()}.get(node.name)
        args.append(20 if value is None else value)
    with pytest.raises(ValueError, match="edge_weight meet row by row: 20 and 7 rows"):
        evaluate(program, args)


@pytest.mark.parametrize("shape", ((1, 8), (20, 1)))
def test_inputs_that_broadcast(shape: tuple[int, int]):
    def model(x: Tensor, e: Tensor, b: Tensor) -> Tensor:
        return user.sum_at((x + b)[e[0]], e[1], x)

    x, e = zoo.plain(20, 30)
    program = program_of(model, x, e, torch.randn(shape))
    assert len(program.results) == 1


def test_float64():
    x, e = zoo.plain(9, 20)
    model = zoo.ZOO["GAT"][0]().double().eval()
    program = program_of(model, x.double(), e)
    assert "f32" not in str(program.module)


# ---------------------------------------------------------------- dropout


def draws(program: Imported) -> bool:
    return any(isinstance(r.source, DropoutKey) for r in program.rows)


def test_dropout_sites_differ_and_follow_the_key():
    class Twice(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            f = nn.functional.dropout
            return f(x, 0.5, self.training), f(x, 0.5, self.training)

    x = torch.ones(200, 8)
    found: list[Any] = []

    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        program = import_graph(gm)
        assert draws(program)
        return lambda *a: found.extend(evaluate(program, a, key)[0] for key in (1, 1, 2)) or gm(*a)

    dynamo_compile(Twice().train(), backend)(x)
    (a, b), (again, _), (other, _) = found
    assert torch.equal(a, again)
    assert not torch.equal(a, b) and not torch.equal(a, other)
    assert set(np.unique(a.numpy())) == {0.0, 2.0}
    assert 0.4 < float((a == 0).float().mean()) < 0.6
    program = program_of(Twice().eval(), x)
    assert not draws(program)


# ---------------------------------------------------------------- refusals


def test_a_refusal_names_the_user_s_line():
    message = refusal(user.sorted_by_end, *zoo.with_matrix(9, 20))
    assert message.startswith("argsort: gnnc has no rule for it (")
    file, line = message.rstrip(")").rsplit("(", 1)[1].rsplit(":", 1)
    with open(file) as f:
        assert "argsort" in f.read().splitlines()[int(line) - 1]


def test_half_precision_is_refused():
    x, e = zoo.plain(9, 20)
    assert "float32 and float64" in refusal(user.link_scores, x.bfloat16(), e, x[:8].bfloat16().t())


def test_rows_meet_rows_of_a_set_made_from_theirs():
    def model(x: Tensor, keep: Tensor) -> Tensor:
        return x + torch.cat([x[keep], x[~keep]])

    args = torch.randn(9, 4), torch.arange(9) % 2 == 0
    assert torch.equal(gnnc.compile(model, fullgraph=True)(*args), model(*args))


def test_a_quotient_of_floats_that_is_rounded_is_not_rounded_down():
    def divided(x: Tensor) -> Tensor:
        return x // 0.5 + x // -4

    x = torch.arange(-20, 21).float().view(-1, 1) / 10
    assert "rounded down" in refusal(lambda x: x // 0.1, x)
    assert torch.equal(gnnc.compile(divided, fullgraph=True)(x), divided(x))


def test_logsumexp_of_infinities():
    inf = float("inf")
    x = torch.tensor([[1.0, 2.0], [inf, 1.0], [-inf, -inf], [-inf, 0.5]])
    compiled = gnnc.compile(lambda x: x.logsumexp(1), fullgraph=True)
    assert torch.allclose(compiled(x), x.logsumexp(1))


def test_all_refusals_at_once():
    def model(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
        return x.sort(0)[0] @ w + (x @ w).cumsum(0)

    (graph,) = graphs_of(model, *zoo.with_matrix(9, 20))
    reasons = ["gnnc has no rule for it", "cumsum along the rows of a set"]
    assert [e.reason for e in refusals(graph)] == reasons


def mixed(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    h = user.sum_at(x[e[0]] @ w, e[1], x)
    p, (q, _) = h.sort(0)[0], h.topk(3, dim=-1)
    return user.sum_at(p[e[0]] @ w, e[1], x) + q.sum(-1, keepdim=True)


def mixed_edits(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    h = user.sum_at(x[e[0]] @ w, e[1], x)
    h += 1
    p = h.sort(0)[0]
    p.mul_(2)
    return user.sum_at(p[e[0]] @ w, e[1], x)


class Interpreted(nn.Module):
    def __init__(self, program: Imported) -> None:
        super().__init__()
        self.program = program

    def forward(self, *args: Any) -> Any:
        outputs, updates = evaluate(self.program, args)
        for i, value in updates.items():
            args[i].copy_(value)
        return outputs


LEFT_TO_TORCH = (
    (mixed, "sort: gnnc has no rule for it"),
    (mixed_edits, "mul_: it edits memory that a part in torch needs as well"),
    (user.sorted_by_end, "argsort: gnnc has no rule for it"),
    (user.top_rows, "topk: gnnc has no rule for it"),
)


@pytest.mark.parametrize(("model", "reason"), LEFT_TO_TORCH)
def test_supported_parts_of_a_graph(model: Callable[..., Tensor], reason: str):
    reasons: list[str] = []

    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        split = split_graph(gm)
        assert split is not None
        supported = [p.name for p in split.parts if p.supported]
        assert supported
        reasons.extend(split.reasons)
        for name in supported:
            setattr(split.module, name, Interpreted(import_graph(getattr(split.module, name))))
        return split.module.forward

    call = dynamo_compile(model, backend)
    for nodes, edges in ((20, 20), (20, 64)):
        args = zoo.with_matrix(nodes, edges, 5)
        with torch.no_grad():
            assert torch.allclose(call(*args), model(*args), atol=1e-4)
    assert any(r.startswith(reason) for r in reasons)


@pytest.mark.parametrize("model", (user.dense_attention,))
def test_graphs_that_are_not_cut(model: Callable[..., Tensor]):
    (graph,) = graphs_of(model, *zoo.with_matrix(9, 20))
    assert split_graph(graph) is None


# ---------------------------------------------------------------- capture


def test_settings_and_substitutes_hold_during_our_calls_only():
    seen: list[bool] = []

    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        seen.append(torch._dynamo.config.capture_scalar_outputs)
        return gm.forward

    before = torch._dynamo.config.capture_scalar_outputs
    dynamo_compile(user.no_dim_size, backend)(*zoo.with_matrix(9, 20))
    assert seen == [True]
    assert torch._dynamo.config.capture_scalar_outputs is before
    assert not is_active()


def test_an_untraceable_call_runs_eagerly_and_says_so():
    told: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, adjacency = zoo.csr(8, 20)
        adjacency = adjacency.to_dense().to_sparse_bsr((2, 2))
    assert "torch.sparse_bsr" in str(why_eager(tensors_in((x, {"a": [adjacency]}))))
    call = dynamo_compile(lambda a, b: b @ a, lambda gm, _: gm.forward, notice=told.append)
    for _ in range(2):
        assert torch.equal(call(x, adjacency), adjacency @ x)
    assert len(told) == 1


def test_errors_of_the_backend_are_not_hidden():
    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        raise KeyError("a bug of ours")

    with pytest.raises(KeyError, match="a bug of ours"):
        dynamo_compile(user.gram, backend)(*zoo.with_matrix(9, 20))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("sizes", ((5, 0), (5, 1), (1, 3), (1, 1)))
@pytest.mark.parametrize("name", ("GCNConv_ew", "GAT_edge_loops", "SAGE_max", "RGCN", "GATv2"))
def test_tiny_graphs(name: str, sizes: tuple[int, int]):
    make, arguments = zoo.ZOO[name]
    args = arguments(*sizes, 1)
    torch.manual_seed(0)
    model = make().eval()
    wrong: list[str] = []

    def backend(gm: fx.GraphModule, examples: Any) -> Callable[..., Any]:
        program = import_graph(gm)

        def run(*a: Any) -> Any:
            out = gm.forward(*a)
            for x, y in zip(zoo.tensors(out), zoo.tensors(evaluate(program, a)[0]), strict=True):
                if x.shape != y.shape or not torch.allclose(x, y, atol=1e-4):
                    wrong.append(str(tuple(x.shape)))
            return out

        return run

    with torch.no_grad():
        dynamo_compile(model, backend)(*args)
    assert not wrong


def test_sizes_that_meet_in_a_layer_are_checked():
    from torch_geometric.nn import GCNConv

    edges = torch.randint(0, 5, (2, 9))
    layer = GCNConv(4, 3, add_self_loops=False)
    program = program_of(layer, torch.randn(5, 4), edges, torch.rand(9))
    (check,) = program.checks
    assert "meet row by row" in check.message
    assert len(program.sets) == 2


def test_a_failure_of_the_importer_asks_for_a_report(monkeypatch: pytest.MonkeyPatch):
    def broken(call: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setitem(RULES, "relu", broken)
    with pytest.raises(ImportCrash, match=r"^relu: .*KeyError: 'lost'.*please report it"):
        program_of(lambda x: x.relu(), torch.randn(4, 3))


def loops_program(*, needs_grad: bool) -> str:
    from torch_geometric.nn import GCNConv

    edges = torch.randint(0, 5, (2, 9))
    weight = torch.rand(9, requires_grad=needs_grad)
    return str(program_of(GCNConv(4, 3), torch.randn(5, 4), edges, weight).module)


def test_a_weight_with_a_gradient_reads_every_old_loop():
    wanted, constant = loops_program(needs_grad=True), loops_program(needs_grad=False)
    assert "inter.reduce last" in wanted and "{every}" in wanted and "{remaining}" not in wanted
    assert "inter.reduce last" not in constant and "{remaining}" in constant


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "edges",
    [[[0, 0, 1], [0, 0, 0]], [[0, 0, 1, 2, 2, 2, 1], [0, 0, 0, 2, 1, 2, 0]], [[0, 1], [1, 0]]],
)
def test_duplicate_loops_get_the_gradient_that_torch_gives(edges: list[list[int]]):
    import copy

    from torch_geometric.nn import GCNConv

    torch.manual_seed(0)
    eager = GCNConv(4, 3).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    x, index = torch.randn(3, 4, dtype=torch.float64), torch.tensor(edges)
    found = []
    for layer in (eager, compiled):
        torch.manual_seed(1)
        weight = torch.rand(index.size(1), dtype=torch.float64, requires_grad=True)
        y = layer(x, index, weight)
        y.square().sum().backward()
        found.append((y, weight.grad, layer.lin.weight.grad))
    for mine, theirs in zip(*found, strict=True):
        assert torch.allclose(mine, theirs)
    assert gnnc.explain(compiled).fallbacks == []


def test_rows_chosen_by_floats_leave_the_rest_compiled():
    from torch_geometric.nn import GCNConv

    class Chosen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.lin = GCNConv(4, 6), nn.Linear(6, 2)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            h = self.conv(x, edges).relu()
            h = h[x[:, 0] > 0]
            return self.lin(h).relu()

    torch.manual_seed(0)
    model = Chosen()
    x, edges = torch.randn(20, 4), torch.randint(0, 20, (2, 50))
    wanted = model(x, edges)
    compiled = gnnc.compile(model)
    assert torch.allclose(compiled(x, edges), wanted, atol=1e-6)
    report = gnnc.explain(compiled)
    assert report.graphs == 2
    (message,) = report.fallbacks
    assert "depends on float values" in message and "test_import_details.py" in message


@pytest.mark.parametrize(
    "view",
    [
        lambda z: z.sum(1, keepdim=True).squeeze(-1),
        lambda z: z.sum(1, keepdim=True).view(-1),
        lambda z: z.view(4, 2, 2).transpose(1, 2).reshape(4, 4),
        lambda z: z.view(1, 4, 4)[0] + z.view(4, 4, 1).squeeze(-1),
        lambda z: z.unsqueeze(0).view(4, 4),
    ],
)
def test_views_of_as_many_rows_as_the_program_says(view: Callable[[Tensor], Tensor]):
    """Groups whose number is written down are as many as columns may be."""
    from torch_geometric.utils import scatter

    def pooled(x: Tensor, batch: Tensor) -> Tensor:
        return view(scatter(x.relu(), batch, 0, 4, "sum"))

    x, batch = torch.randn(20, 4), torch.arange(20) // 5
    compiled = gnnc.compile(pooled)
    torch.testing.assert_close(compiled(x, batch), pooled(x, batch))
    assert not gnnc.explain(compiled).fallbacks


def test_the_number_of_groups_may_be_a_tensor():
    from torch_geometric.utils import scatter

    def pooled(x: Tensor, batch: Tensor) -> Tensor:
        return scatter(x.relu(), batch, 0, batch.max() + 1, "sum")

    x, batch = torch.randn(20, 4), torch.arange(20) // 5
    compiled = gnnc.compile(pooled)
    torch.testing.assert_close(compiled(x, batch), pooled(x, batch))
