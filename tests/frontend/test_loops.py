"""Programs of the loop language on tensors: numbers and gradients, calls, IR."""

# ruff: noqa: F722, F821 (names of widths, and functions of the language)

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import HGTConv, RGATConv, RGCNConv

import gnnc
from gnnc import Graph, Nodes, Weights
from gnnc.frontend.gnn_opt import main as gnn_opt
from gnnc.passes.driver.runner import PassCrash, module_text
from gnnc.passes.inter.reorder_linear import ReorderLinearPass
from gnnc.tests.test_examples import example

from . import loop_programs as programs

BOUNDS = {torch.float32: 2e-5, torch.float64: 1e-10}
loops = example("loops")


def graph(nodes: int = 20, edges: int = 90, types: int = 3, seed: int = 0) -> Graph:
    """Parallel edges, nodes without any, and a type without edges."""
    made = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, max(1, nodes - 3), (2, edges), generator=made)
    edge_index[:, edges // 2 :] = edge_index[:, : edges - edges // 2]
    edge_type = torch.randint(0, types - 1, (edges,), generator=made)
    node_type = torch.arange(nodes) % 2
    return Graph(edge_index, nodes, edge_type, node_type, num_edge_types=types, num_node_types=2)


def same(ours: Any, theirs: Any, inputs: Sequence[Tensor]) -> None:
    """Equal results and gradients, relative to the greatest number."""
    ours, theirs = ([y] if isinstance(y, Tensor) else list(y) for y in (ours, theirs))
    bound = BOUNDS[ours[0].dtype]
    weights = [torch.randn_like(y) for y in theirs]
    wanted = [x for x in inputs if x.requires_grad]
    found, expected = (gradients(ys, wanted, weights) for ys in (ours, theirs))
    for a, b in zip([*ours, *found], [*theirs, *expected], strict=True):
        if b is None:
            assert a is None or not a.any()
            continue
        assert a.shape == b.shape
        scale = max(1.0, float(b.detach().abs().max())) if b.numel() else 1.0
        assert (a.detach() - b.detach()).abs().max().item() <= bound * scale if b.numel() else True


def gradients(ys: Sequence[Tensor], xs: Sequence[Tensor], weights: Sequence[Tensor]) -> Any:
    pairs = [(y, w) for y, w in zip(ys, weights, strict=True) if y.requires_grad]
    outputs, cotangents = zip(*pairs, strict=True)
    return torch.autograd.grad(outputs, xs, cotangents, allow_unused=True)


def numbers(dtype: torch.dtype, *shapes: Sequence[int]) -> list[Tensor]:
    return [torch.randn(*s, dtype=dtype, requires_grad=True) for s in shapes]


# ------------------------------------------------------------------------- PyG's layers


@pytest.mark.parametrize("dtype", BOUNDS)
def test_rgcn(dtype):
    g = graph()
    conv, (x,) = RGCNConv(6, 4, 3).to(dtype), numbers(dtype, (20, 6))
    out = loops.rgcn(g, x, conv.weight, conv.root, conv.bias)
    same(out, conv(x, g.edge_index, g.edge_type), [x, *conv.parameters()])


@pytest.mark.parametrize("dtype", BOUNDS)
def test_rgat(dtype):
    g = graph()
    conv, (x,) = RGATConv(6, 4, 3, heads=2).to(dtype), numbers(dtype, (20, 6))
    given = (conv.weight.view(3, 6, 2, 4), conv.q, conv.k, conv.bias)
    parameters = [conv.weight, conv.q, conv.k, conv.bias]
    same(loops.rgat(g, x, *given), conv(x, g.edge_index, g.edge_type), [x, *parameters])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_hgt(dtype):
    g, width = loops.random_graph(), loops.WIDTH
    conv, (x,) = (
        HGTConv(width, width, (loops.KINDS, loops.RELATIONS), loops.HEADS),
        numbers(dtype, (loops.NODES, width)),
    )
    loops.hgt_in_pyg(conv, g, x.float())  # makes its weights
    conv = conv.to(dtype)
    out = loops.hgt(g, x, *loops.hgt_weights(conv))
    same(out, loops.hgt_in_pyg(conv, g, x), [x, *conv.parameters()])


# ------------------------------------------------------------------------- the language


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("edges", [0, 1, 90])
def test_listing(dtype, edges):
    g = graph(edges=edges)
    given = numbers(dtype, (20, 5), (3, 5, 4), (3, 4), (3, 4))
    same(programs.listing(g, *given), programs.listing_in_torch(g, *given), given)


@pytest.mark.parametrize("dtype", BOUNDS)
def test_folds_over_two_sets_of_nodes(dtype):
    edge_index = torch.stack([torch.randint(0, 9, (40,)), torch.randint(0, 5, (40,))])
    g = Graph(edge_index, (9, 7))
    given = numbers(dtype, (9, 3), (7, 3), (40,), (40, 2))
    same(programs.folds(g, *given), programs.folds_in_torch(g, *given), given)


@pytest.mark.parametrize("dtype", BOUNDS)
def test_heads(dtype):
    given = numbers(dtype, (20, 3), (3, 2, 4), (2, 4))
    g = graph()
    same(programs.scaled(g, *given), programs.scaled_in_torch(g, *given), given)


@pytest.mark.parametrize("dtype", BOUNDS)
def test_types_of_two_sets_of_nodes(dtype):
    edge_index = torch.stack([torch.randint(0, 9, (40,)), torch.randint(0, 5, (40,))])
    kinds = torch.arange(9) % 2, torch.arange(7) % 2
    types = torch.randint(0, 3, (40,))
    g = Graph(edge_index, (9, 7), types, kinds, num_edge_types=3, num_node_types=2)
    given = numbers(dtype, (9, 3), (2, 3, 3), (3, 3), (3, 4), (4, 3))
    same(programs.typed(g, *given), programs.typed_in_torch(g, *given), given)
    compiled = gnnc.compile(lambda g, *xs: programs.typed(g, *xs))
    same(compiled(g, *given), programs.typed_in_torch(g, *given), given)


@pytest.mark.parametrize("dtype", BOUNDS)
def test_results_that_are_not_computed(dtype):
    g, (x, w) = graph(), numbers(dtype, (20, 3), (90,))
    expected = programs.passed_on_in_torch(g, x, w=w)
    out = programs.passed_on(g, x, w=w)
    same([out[i] for i in (0, 1, 2, 3, 6)], [expected[i] for i in (0, 1, 2, 3, 6)], [x, w])
    torch.testing.assert_close(programs.passed_on(g, x, w=w), expected)
    assert out[0] is not x
    assert not out[4].requires_grad


def test_no_tensors():
    g = graph()
    expected = torch.bincount(g.edge_index.flatten(), minlength=20).float()
    torch.testing.assert_close(programs.degrees(g), expected)
    torch.testing.assert_close(gnnc.compile(lambda g: programs.degrees(g))(g), expected)


def test_layouts_and_types_of_indices():
    g, conv, x = graph(), RGCNConv(6, 4, 3), torch.randn(6, 20).T
    expected = loops.rgcn(g, x, conv.weight, conv.root, conv.bias)
    columns = g.edge_index.int().T.contiguous().T
    assert g.edge_type is not None
    again = Graph(columns, 20, g.edge_type.int(), num_edge_types=3)
    out = loops.rgcn(again, x.contiguous(), conv.weight, conv.root, conv.bias)
    torch.testing.assert_close(out, expected)
    with torch.inference_mode():
        inferred = loops.rgcn(again, x, conv.weight, conv.root, conv.bias)
        torch.testing.assert_close(inferred, expected.detach())


@pytest.mark.parametrize("kind", [nn.Parameter, Tensor.clone])
def test_degrees_by_type_beside_other_rows(kind):
    """Sets of nodes that Dynamo knows by several sizes: `dst` leads to more than one."""
    g, (x, y, W) = graph(), numbers(torch.float64, (20, 3), (20,), (3, 3))
    W = kind(W.detach()).requires_grad_()
    compiled = gnnc.compile(lambda g, x, y: programs.normed(g, x, y, W))
    same(compiled(g, x, y), programs.normed.called_in_torch(g, x, y, W), [x, y, W])
    assert gnnc.explain(compiled).fallbacks == []


def test_second_derivatives():
    given = numbers(torch.float64, (6, 2), (3, 2, 2), (3, 2), (3, 2))
    g = graph(6, 9)
    assert torch.autograd.gradgradcheck(lambda *xs: programs.listing(g, *xs), given)


def test_second_derivatives_of_folds():
    g = Graph(torch.tensor([[0, 1, 2, 2], [0, 0, 1, 1]]), (3, 3))
    given = numbers(torch.float64, (3, 2), (3, 2), (4,), (4, 2))
    assert torch.autograd.gradgradcheck(lambda *xs: programs.folds(g, *xs), given)


# ------------------------------------------------------------------------- calls


class Net(nn.Module):
    """A program as a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 6, 4))
        self.root = nn.Parameter(torch.randn(6, 4))
        self.bias = nn.Parameter(torch.randn(4))
        self.last = nn.Linear(4, 2)

    def forward(self, g: Graph, x: Tensor) -> Tensor:
        return self.last(loops.rgcn(g, x, self.weight, self.root, self.bias).relu())


def test_layer_in_a_module():
    net, g, x = Net(), graph(), torch.randn(20, 6)
    compiled = gnnc.compile(copy.deepcopy(net))
    expected = net(g, x)
    expected.sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    out = compiled(g, x)
    out.sum().backward()
    torch.testing.assert_close(out, expected)
    for p, q in zip(net.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)
    for nodes, edges in ((30, 200), (9, 40)):
        other, x = graph(nodes, edges), torch.randn(nodes, 6)
        torch.testing.assert_close(compiled(other, x), net(other, x))
    report = gnnc.explain(compiled)
    assert (report.graphs, report.fallbacks) == (1, [])


def test_layer_in_a_whole_step():
    net, g, x, y = Net(), graph(), torch.randn(20, 6), torch.randint(0, 2, (20,))
    other = copy.deepcopy(net)
    optimizers = [torch.optim.Adam(n.parameters(), lr=0.01) for n in (net, other)]
    step = gnnc.train_step(lambda x, y: nn.functional.cross_entropy(net(g, x), y), optimizers[0])
    for _ in range(5):
        optimizers[1].zero_grad()
        loss = nn.functional.cross_entropy(other(g, x), y)
        loss.backward()
        optimizers[1].step()
        torch.testing.assert_close(step(x, y), loss.detach())
    assert gnnc.explain(step).fallbacks == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["listing", "folds", "scaled"])
def test_within_a_compiled_function(name):
    """What a program is to Dynamo has the numbers of what it is by itself."""
    program = getattr(programs, name)
    shapes = {
        "listing": [(20, 5), (3, 5, 4), (3, 4), (3, 4)],
        "folds": [(20, 3), (20, 3), (90,), (90, 2)],
        "scaled": [(20, 3), (3, 2, 4), (2, 4)],
    }
    g, given = graph(), numbers(torch.float64, *shapes[name])
    compiled = gnnc.compile(lambda g, *xs: program(g, *xs))
    same(compiled(g, *given), program(g, *given), given)
    assert gnnc.explain(compiled).fallbacks == []


def fresh(program: Any) -> Any:
    """The program as it is before its first call."""
    return gnnc.program(program.__wrapped__)


def test_copies_and_pickles():
    net = nn.ModuleList([Net()])
    net.layer = loops.rgcn  # type: ignore[assignment]
    assert copy.deepcopy(net).layer is loops.rgcn
    assert pickle.loads(pickle.dumps(programs.listing)) is programs.listing


def test_graphs_of_any_size_share_a_program():
    program, conv = fresh(loops.rgcn), RGCNConv(6, 4, 3)
    for nodes, edges in ((20, 90), (7, 3), (50, 400), (3, 0)):
        g, x = graph(nodes, edges), torch.randn(nodes, 6)
        out = program(g, x, conv.weight, conv.root, conv.bias)
        torch.testing.assert_close(out, conv(x, g.edge_index, g.edge_type))
    assert gnnc.explain(program).graphs == 1
    with torch.no_grad():
        program(g, x, conv.weight, conv.root, conv.bias)
    assert gnnc.explain(program).graphs == 2
    wide = [torch.randn(*s) for s in ((3, 2), (3, 2, 5), (2, 5), (5,))]
    assert program(g, *wide).shape == (3, 5)
    assert gnnc.explain(program).graphs == 3
    assert gnnc.explain(program).fallbacks == []


def test_a_graph_that_is_edited():
    g, conv, x = graph(), RGCNConv(6, 4, 3), torch.randn(20, 6)
    loops.rgcn(g, x, conv.weight, conv.root, conv.bias)
    g.edge_type.zero_()
    out = loops.rgcn(g, x, conv.weight, conv.root, conv.bias)
    torch.testing.assert_close(out, conv(x, g.edge_index, g.edge_type))


def test_arguments_by_name():
    g, conv, x = graph(), RGCNConv(6, 4, 3), torch.randn(20, 6)
    out = loops.rgcn(W=conv.weight, g=g, bias=conv.bias, root=conv.root, x=x)
    torch.testing.assert_close(out, loops.rgcn(g, x, conv.weight, conv.root, conv.bias))
    assert loops.rgcn.__name__ == "rgcn"
    with pytest.raises(TypeError, match="missing a required argument: 'bias'"):
        loops.rgcn(g, x, conv.weight, conv.root)


def broken(*args: Any) -> None:
    raise KeyError("lost")


def test_where_gnnc_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("GNNC_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # for reproducers
    monkeypatch.setattr(ReorderLinearPass, "apply", broken)
    program, conv, g = fresh(loops.rgcn), RGCNConv(6, 4, 3), graph()
    (x,) = numbers(torch.float32, (20, 6))
    out = program(g, x, conv.weight, conv.root, conv.bias)
    same(out, conv(x, g.edge_index, g.edge_type), [x, *conv.parameters()])
    (reason,) = gnnc.explain(program).fallbacks
    assert "rgcn cannot be compiled" in reason
    assert "please report it" in reason
    strict = gnnc.program(fullgraph=True)(loops.rgcn.__wrapped__)
    with pytest.raises(PassCrash):
        strict(g, x, conv.weight, conv.root, conv.bias)


GOOD = {"x": (20, 6), "W": (3, 6, 4), "root": (6, 4), "bias": (4,)}
REFUSED = [
    ("x", (19, 6), ValueError, "x has 19 rows, the graph has 20 nodes"),
    ("x", (20, 7), ValueError, "W: the width `in` is 7 in x, and 6 here"),
    ("x", (20,), ValueError, r"x is declared Nodes x in, the tensor has shape \(20,\)"),
    ("W", (2, 6, 4), ValueError, "W has 2 rows, the graph has 3 types of edges"),
    ("bias", (4, 1), ValueError, r"bias is declared out, the tensor has shape \(4, 1\)"),
    ("bias", (5,), ValueError, "bias: the width `out` is 4 in W, and 5 here"),
]


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("name, shape, kind, message", REFUSED)
def test_tensors_that_do_not_fit(called, name, shape, kind, message):
    program = fresh(loops.rgcn)
    if called:
        program(graph(), *(torch.randn(s) for s in GOOD.values()))
    with pytest.raises(kind, match=message):
        program(graph(), *(torch.randn(s) for s in (GOOD | {name: shape}).values()))


def test_arguments_of_another_kind():
    g = graph()
    x, *weights = (torch.randn(s) for s in GOOD.values())
    with pytest.raises(TypeError, match="g is a gnnc.Graph, not Tensor"):
        loops.rgcn(g.edge_index, x, *weights)
    with pytest.raises(TypeError, match="x is a tensor, not list"):
        loops.rgcn(g, [1.0], *weights)
    with pytest.raises(TypeError, match="x has float32 or float64 numbers, not torch.int64"):
        loops.rgcn(g, x.long(), *weights)
    with pytest.raises(ValueError, match="g has no edge_type, which the program reads"):
        loops.rgcn(Graph(g.edge_index, 20), x, *weights)
    with pytest.raises(ValueError, match="g has two sets of nodes, the program is over nodes of"):
        loops.rgcn(Graph(g.edge_index, (20, 20), g.edge_type, num_edge_types=3), x, *weights)


def test_widths_that_only_a_product_tells():
    @gnnc.program
    def program(g: Graph, x: Nodes["d"], W: Weights["d", "heads * k"], a: Weights["heads"]):
        for n in g.nodes():
            n["y"] = n.x @ W * width("k") + sum(a)
        return n["y"]

    x, W, a = torch.randn(20, 3), torch.randn(3, 8), torch.randn(2)
    torch.testing.assert_close(program(graph(), x, W, a), x @ W * 4 + a.sum())
    with pytest.raises(ValueError, match=r"W: the width `heads\*k` is 3, the tensor has 8"):
        program(graph(), x, W, torch.randn(3))


GRAPHS: list[tuple[Callable[[Tensor], Any], type[Exception], str]] = [
    (lambda e: Graph([[0], [1]], 3), TypeError, "edge_index is a tensor, not list"),  # type: ignore[arg-type]
    (lambda e: Graph(e.float(), 3), TypeError, "edge_index has integers"),
    (lambda e: Graph(e.T, 3), ValueError, r"edge_index has shape \(2, edges\), not \(3, 2\)"),
    (lambda e: Graph(e, 2), ValueError, r"edge_index\[0\] has 2: there are 2 source nodes"),
    (lambda e: Graph(e, (3, 1)), ValueError, r"edge_index\[1\] has 2: there are 1 destination"),
    (lambda e: Graph(e - 1, 3), ValueError, r"edge_index\[0\] has -1"),
    (lambda e: Graph(e, -1), ValueError, "num_nodes is a number or"),
    (lambda e: Graph(e, 3, e[0]), ValueError, "edge_type and num_edge_types come together"),
    (
        lambda e: Graph(e, 3, e[0], num_edge_types=2),
        ValueError,
        "edge_type has 2: there are 2 types",
    ),
    (
        lambda e: Graph(e, 3, e[0, :2], num_edge_types=3),
        ValueError,
        "edge_type has a number for each of the 3 edges",
    ),
    (
        lambda e: Graph(e, (3, 3), node_type=e[0], num_node_types=3),
        TypeError,
        "node_type is a tensor for each of the two sets",
    ),
]


@pytest.mark.parametrize("make, kind, message", GRAPHS, ids=[m for _, _, m in GRAPHS])
def test_graphs_that_are_none(make, kind, message):
    with pytest.raises(kind, match=message):
        make(torch.tensor([[0, 1, 2], [0, 1, 2]]))


# ------------------------------------------------------------------------- IR


def test_ir_is_read_by_gnn_opt(tmp_path, capsys):
    path = tmp_path / "rgat.mlir"
    path.write_text(loops.rgat.ir({"in": 8, "heads": 2, "out": 4}, types=3))
    assert gnn_opt([str(path), "-p", "infer-domains,canonicalize"]) == 0
    printed = capsys.readouterr().out
    assert '"y,yz->z"' in printed
    assert "!inter.rows<g[rel, src], 8xf32>" in printed  # compact materialization
    assert "inter.softmax" in printed
    assert module_text(loops.rgat.module({"in": 8, "heads": 2, "out": 4}, types=3)) == (
        path.read_text()
    )


def test_what_passes_make_of_programs():
    """As many kernels as of PyG's layers."""
    g, x = graph(), torch.randn(20, 6)
    rgcn, rgat = RGCNConv(6, 4, 3), RGATConv(6, 4, 3, heads=2)
    mine, other = fresh(loops.rgcn), fresh(loops.rgat)
    mine(g, x, rgcn.weight, rgcn.root, rgcn.bias)
    other(g, x, rgat.weight.view(3, 6, 2, 4), rgat.q, rgat.k, rgat.bias)
    for program, conv in ((mine, rgcn), (other, rgat)):
        compiled = gnnc.compile(conv)
        compiled(x, g.edge_index, g.edge_type)
        kernels = len(gnnc.explain(compiled).kernels)
        assert len(gnnc.explain(program).kernels) == kernels
