"""Names, modules and errors of gnnc.dgl.nn are those of DGL's."""

from __future__ import annotations

import importlib
import inspect
import pickle
from collections.abc import Callable
from copy import deepcopy
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gnnc.dgl
import gnnc.dgl.nn.pytorch
from gnnc.bench.dgl_shim import install

from .cases import CASES
from .layer_case import called_with

pytestmark = pytest.mark.filterwarnings("ignore")
needs_dgl = pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")
LAYERS = sorted(name for name in gnnc.dgl.nn.pytorch.__all__ if name[0].isupper())


@pytest.fixture(scope="module")
def dgl() -> ModuleType:
    install()
    import dgl

    return dgl


@needs_dgl
@pytest.mark.parametrize("name", LAYERS)
def test_signatures(dgl: ModuleType, name: str):
    ours, theirs = getattr(gnnc.dgl.nn, name), getattr(dgl.nn.pytorch, name)
    for method in ("__init__", "forward"):
        assert _parameters(getattr(ours, method)) == _parameters(getattr(theirs, method)), method
    for method in ("reset_parameters", "set_allow_zero_in_degree"):
        # A list of names that DGL has is one that scripts call.
        assert hasattr(ours, method) or not hasattr(theirs, method), method


def _parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    if function is nn.Module.__init__:
        return [("self", inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty)]
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


@needs_dgl
def test_a_layer_of_dgl_is_one_of_ours(dgl: ModuleType):
    """All that have state or call a graph, but for those that were left out on purpose."""
    left_out = (
        "BiasedMHA CuGraphGATConv CuGraphRelGraphConv CuGraphSAGEConv DGNConv DeepWalk "
        "DegreeEncoder EGTLayer GNNExplainer GraphormerLayer GroupRevRes HeteroGNNExplainer "
        "HeteroPGExplainer HeteroSubgraphX LapPosEncoder MetaPath2Vec NodeEmbedding PGExplainer "
        "PathEncoder SetTransformerDecoder SetTransformerEncoder SpatialEncoder SpatialEncoder3d "
        "SubgraphX TWIRLSConv TWIRLSUnfoldingAndAttention"
    ).split()
    theirs = {name for name in dir(dgl.nn.pytorch) if name[0].isupper()}
    assert sorted(theirs - set(LAYERS)) == left_out


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("nn", "GraphConv"),
        ("nn.functional", "edge_softmax"),
        ("nn.pytorch", "GraphConv"),
        ("nn.pytorch", "edge_softmax"),
        ("nn.pytorch.conv", "GATConv"),
        ("nn.pytorch.conv.gineconv", "GINEConv"),
        ("nn.pytorch.conv.edgegatconv", "EdgeGATConv"),
        ("nn.pytorch.conv.densegraphconv", "DenseGraphConv"),
        ("nn.pytorch.factory", "KNNGraph"),
        ("nn.pytorch.glob", "Set2Set"),
        ("nn.pytorch.hetero", "HeteroGraphConv"),
        ("nn.pytorch.hetero", "get_aggregate_fn"),
        ("nn.pytorch.linear", "TypedLinear"),
        ("nn.pytorch.link", "EdgePredictor"),
        ("nn.pytorch.softmax", "edge_softmax"),
        ("nn.pytorch.utils", "Identity"),
        ("nn.pytorch.utils", "JumpingKnowledge"),
    ],
)
def test_places(module: str, name: str):
    found = getattr(importlib.import_module(f"gnnc.dgl.{module}"), name)
    assert found is getattr(gnnc.dgl.nn, name, found)


def test_each_layer_has_the_module_of_its_name():
    for name in gnnc.dgl.nn.conv.__all__:
        if name != "EdgeWeightNorm":
            place = importlib.import_module(f"gnnc.dgl.nn.pytorch.conv.{name.lower()}")
            assert getattr(place, name) is getattr(gnnc.dgl.nn, name)


@pytest.mark.parametrize("module", [gnnc.dgl.nn, gnnc.dgl.nn.pytorch])
def test_unknown_names_say_what_there_is(module: ModuleType):
    with pytest.raises(AttributeError, match="no FooConv here; the layers are AGNNConv, .*Set2Set"):
        _ = module.FooConv


WIDE = torch.ones(3, 4)
LABELS = torch.tensor([0, 1, 1])
MISTAKES: dict[str, Callable[[ModuleType, ModuleType, Any], Any]] = {
    "norm": lambda dgl, dnn, g: dnn.GraphConv(3, 4, norm="x"),
    "two weights": lambda dgl, dnn, g: _open(dnn.GraphConv(4, 4))(g, WIDE, weight=torch.ones(4, 4)),
    "aggregator of SAGE": lambda dgl, dnn, g: dnn.SAGEConv(4, 4, "x"),
    "aggregator of GIN": lambda dgl, dnn, g: dnn.GINConv(None, "x"),
    "aggregator of NNConv": lambda dgl, dnn, g: dnn.NNConv(4, 3, nn.Linear(2, 12), "x"),
    "aggregator of GMM": lambda dgl, dnn, g: dnn.GMMConv(4, 3, 2, 3, "x"),
    "widths of ends": lambda dgl, dnn, g: dnn.SAGEConv(4, 4, "gcn")(g, (WIDE, torch.ones(3, 5))),
    "weights of two numbers": lambda dgl, dnn, g: dnn.EdgeWeightNorm()(g, torch.ones(2, 2)),
    "negative weight": lambda dgl, dnn, g: dnn.EdgeWeightNorm()(g, torch.tensor([1.0, -1.0])),
    "weight 0": lambda dgl, dnn, g: dnn.TAGConv(4, 4)(g, WIDE, torch.tensor([1.0, 0.0])),
    "regularizer": lambda dgl, dnn, g: dnn.TypedLinear(4, 4, 3, "x", 2),
    "no bases": lambda dgl, dnn, g: dnn.TypedLinear(4, 4, 3, "basis"),
    "blocks": lambda dgl, dnn, g: dnn.RelGraphConv(4, 4, 3, "bdd", 3),
    "aggregate": lambda dgl, dnn, g: dnn.HeteroGraphConv({}, "x"),
    "relation without module": lambda dgl, dnn, g: _two_relations(dgl, dnn, ("a",), ("u", "v")),
    "no features of a target": lambda dgl, dnn, g: _two_relations(dgl, dnn, ("a", "b"), ("u",)),
    "mode": lambda dgl, dnn, g: dnn.JumpingKnowledge("x"),
    "sizes of the mode": lambda dgl, dnn, g: dnn.JumpingKnowledge("lstm"),
    "norm_type": lambda dgl, dnn, g: dnn.LabelPropagation(2, 0.1, "x")(g, LABELS),
    "gate": lambda dgl, dnn, g: dnn.GlobalAttentionPooling(nn.Linear(4, 2))(g, WIDE),
    "aggregator of PNA": lambda dgl, dnn, g: dnn.PNAConv(4, 4, ["x"], ["identity"], 1.0)(g, WIDE),
    "towers": lambda dgl, dnn, g: dnn.PNAConv(4, 4, ["mean"], ["identity"], 1.0, num_towers=3),
    "no edges for PNA": lambda dgl, dnn, g: dnn.PNAConv(
        4, 4, ["mean"], ["identity"], 1.0, edge_feat_size=3
    )(g, WIDE),
    "no edges for EGNN": lambda dgl, dnn, g: dnn.EGNNConv(4, 4, 4, 3)(g, WIDE, WIDE),
    "types out of range": lambda dgl, dnn, g: dnn.GatedGraphConv(4, 4, 1, 2)(
        g, WIDE, torch.tensor([0, 2])
    ),
    "negative types": lambda dgl, dnn, g: dnn.GatedGraphConv(4, 4, 1, 2)(
        g, WIDE, torch.tensor([0, -1])
    ),
    "width": lambda dgl, dnn, g: _open(dnn.GraphConv(5, 4))(g, WIDE),
    "operation": lambda dgl, dnn, g: dnn.EdgePredictor("x"),
    "no graph": lambda dgl, dnn, g: dnn.Sequential(dnn.SAGEConv(4, 4, "mean"))(3, WIDE),
    "EGAT": lambda dgl, dnn, g: dnn.EGATConv(4, 4, 3, 3, 1)(g, WIDE, torch.ones(2, 4)),
    "weights of GraphConv": lambda dgl, dnn, g: _open(dnn.GraphConv(4, 4))(
        g, WIDE, edge_weight=torch.ones(5)
    ),
    "weights of SAGE": lambda dgl, dnn, g: dnn.SAGEConv(4, 4, "mean")(g, WIDE, torch.ones(5)),
}


@needs_dgl
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_raise_what_dgl_raises(dgl: ModuleType, name: str):
    raised = []
    for library in (dgl, gnnc.dgl):
        with pytest.raises(Exception) as caught:
            graph = library.graph(([0, 1], [1, 2]))
            MISTAKES[name](library, library.nn, graph)
        raised.append(caught.value)
    theirs, ours = raised
    assert type(ours).__name__ == type(theirs).__name__, f"{ours!r} in place of {theirs!r}"
    assert str(ours)


def _open(layer: nn.Module) -> nn.Module:
    layer.set_allow_zero_in_degree(True)
    return layer


def _two_relations(dgl: ModuleType, dnn: ModuleType, etypes: tuple, ntypes: tuple) -> Any:
    ends = ([0], [1])
    graph = dgl.heterograph({("u", "a", "v"): ends, ("v", "b", "u"): ends})
    layer = dnn.HeteroGraphConv({etype: dnn.GraphConv(2, 2) for etype in etypes})
    return layer(graph, {ntype: torch.ones(2, 2) for ntype in ntypes})


CHECKED = {
    "GraphConv": ((4, 3), ()),
    "GATConv": ((4, 3, 2), ()),
    "GATv2Conv": ((4, 3, 2), ()),
    "EdgeGATConv": ((4, 5, 3, 2), (torch.ones(2, 5),)),
    "DotGatConv": ((4, 3, 2), ()),
    "SGConv": ((4, 3), ()),
    "EdgeConv": ((4, 3), ()),
    "AGNNConv": ((), ()),
    "GMMConv": ((4, 3, 2, 3), (torch.ones(2, 2),)),
    "GCN2Conv": ((4, 1), (WIDE,)),
}


@pytest.mark.parametrize("name", CHECKED)
def test_nodes_without_incoming_edges(name: str):
    graph = gnnc.dgl.graph(([0, 1], [1, 2]))
    sizes, more = CHECKED[name]
    layer = getattr(gnnc.dgl.nn, name)(*sizes)
    with pytest.raises(gnnc.dgl.DGLError, match="without incoming edges"):
        layer(graph, WIDE, *more)
    allowing = getattr(gnnc.dgl.nn, name)(*sizes, allow_zero_in_degree=True)
    assert allowing(graph, WIDE, *more).isfinite().all()
    if name != "DotGatConv":  # has the option and not the method
        layer.set_allow_zero_in_degree(True)
        assert layer(graph, WIDE, *more).isfinite().all()


@needs_dgl
@pytest.mark.parametrize("name", ["SAGEConv", "GATConv", "RelGraphConv", "HGTConv", "GINConv"])
def test_graphs_without_edges(dgl: ModuleType, name: str):
    made = {
        "SAGEConv": ((4, 3, "lstm"), {}, ()),
        "GATConv": ((4, 3, 2), {"allow_zero_in_degree": True}, ()),
        "RelGraphConv": ((4, 3, 2), {}, (torch.zeros(0, dtype=torch.int64),)),
        "HGTConv": ((4, 3, 2, 2, 2), {}, (LABELS, torch.zeros(0, dtype=torch.int64))),
        "GINConv": ((nn.Linear(4, 3), "max"), {}, ()),
    }
    args, options, more = made[name]
    results = []
    for library in (dgl, gnnc.dgl):
        torch.manual_seed(0)
        layer = getattr(library.nn, name)(*args, **options).eval()
        results.append(layer(library.graph(([], []), num_nodes=3), WIDE, *more))
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("presorted", [True, False])
def test_presorted_types_give_the_same(presorted: bool):
    graph = gnnc.dgl.graph(([0, 1, 2, 0], [1, 2, 0, 2]))
    etypes, ntypes = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 1])
    layers = gnnc.dgl.nn.RelGraphConv(4, 3, 3), gnnc.dgl.nn.HGTConv(4, 3, 2, 2, 3).eval()
    for layer, kinds in zip(layers, ((etypes,), (ntypes, etypes)), strict=True):
        expected = layer(graph, WIDE, *kinds)
        torch.testing.assert_close(layer(graph, WIDE, *kinds, presorted=presorted), expected)


def test_factors_of_edges_may_be_one_dimensional():
    """As DGL's documentation has them, and its code does not take them."""
    graph = gnnc.dgl.graph(([0, 1], [1, 2]))
    layer, factors = gnnc.dgl.nn.RelGraphConv(4, 3, 2), torch.tensor([0.5, 2.0])
    expected = layer(graph, WIDE, torch.tensor([0, 1]), factors.unsqueeze(1))
    torch.testing.assert_close(layer(graph, WIDE, [0, 1], factors), expected)


def test_egat_without_bias():
    """DGL's own cannot be made."""
    graph = gnnc.dgl.graph(([0, 1, 2], [1, 2, 0]))
    layer = gnnc.dgl.nn.EGATConv(4, 4, 3, 5, 2, bias=False)
    nodes, edges = layer(graph, WIDE, WIDE)
    assert nodes.shape == (3, 2, 3) and edges.shape == (3, 2, 5)


def test_largest_eigenvalue_of_dense_cheb():
    """DGL's own calls what torch no longer has."""
    layer = gnnc.dgl.nn.DenseChebConv(4, 3, 3)
    ring = torch.roll(torch.eye(4), 1, 0) + torch.roll(torch.eye(4), -1, 0)
    rows = torch.randn(4, 4)
    torch.testing.assert_close(layer(ring, rows), layer(ring, rows, 2.0))


def test_graph_for_each_module():
    dnn = gnnc.dgl.nn
    first, second = gnnc.dgl.graph(([0, 1], [1, 0])), gnnc.dgl.graph(([0, 1], [0, 1]))
    layers = dnn.Sequential(dnn.GraphConv(4, 4), dnn.GraphConv(4, 3))
    rows = torch.randn(2, 4)
    expected = layers[1](second, layers[0](first, rows))
    torch.testing.assert_close(layers([first, second], rows), expected)


def test_cached_hops_are_kept():
    graph = gnnc.dgl.graph(([0, 1], [1, 0]))
    layer = gnnc.dgl.nn.SGConv(4, 3, cached=True)
    expected = layer(graph, torch.ones(2, 4))
    assert torch.equal(layer(graph, torch.zeros(2, 4)), expected)


def test_embeddings_by_type():
    table = gnnc.dgl.nn.HeteroEmbedding({"u": 3, ("u", "e", "v"): 2}, 4)
    assert {key: weight.shape for key, weight in table.weight.items()} == {
        "u": (3, 4),
        ("u", "e", "v"): (2, 4),
    }


@pytest.mark.parametrize("name", ["KNNGraph", "SegmentedKNNGraph", "RadiusGraph"])
def test_graphs_of_points(name: str):
    points = torch.tensor([[0.0], [1.0], [5.0], [6.0]])
    made = {
        "KNNGraph": lambda dnn: dnn.KNNGraph(2)(points),
        "SegmentedKNNGraph": lambda dnn: dnn.SegmentedKNNGraph(2)(points, [2, 2]),
        "RadiusGraph": lambda dnn: dnn.RadiusGraph(1.5, self_loop=True)(points),
    }
    pairs = sorted(zip(*(ends.tolist() for ends in made[name](gnnc.dgl.nn).edges()), strict=True))
    assert pairs == [(a, b) for part in ((0, 1), (2, 3)) for a in part for b in part]


def test_layers_are_copied_and_pickled():
    for case in {case.layer.name: case for case in CASES if case.graph is not None}.values():
        if case.layer.name == "HeteroGraphConv":
            continue  # below
        layer = case.layer.made(gnnc.dgl.nn).eval()
        args, kwargs = called_with(gnnc.dgl, case, torch.float32, {})
        for other in (deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            _equal(other(*args, **kwargs), layer(*args, **kwargs))


def _equal(found: Any, expected: Any) -> None:
    pairs = [(found, expected)] if isinstance(expected, Tensor) else zip(found, expected)
    for one, other in pairs:
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("aggregate", ["sum", "stack"])
def test_layer_of_relations_is_pickled(aggregate: str):
    layer = gnnc.dgl.nn.HeteroGraphConv({"a": gnnc.dgl.nn.GraphConv(4, 3)}, aggregate)
    again = pickle.loads(pickle.dumps(layer))
    graph = gnnc.dgl.heterograph({("u", "a", "u"): ([0, 1], [1, 0])})
    rows = {"u": torch.ones(2, 4)}
    torch.testing.assert_close(again(graph, rows)["u"], layer(graph, rows)["u"])
