"""Each layer with each option that changes its formula, on the graphs that it may meet."""

from __future__ import annotations

import torch
from torch import tanh
from torch.nn.functional import normalize

from .layer_case import Case, Input, Layer, edges, nodes, pair, part, targets, types

WEIGHT = Input("edges", (), "positive")
POSITIVE = "raises where a weight is not positive, which is to branch on data"
MAILBOXES = "the mailboxes of an LSTM have one shape for each number of neighbours"
CLASSES = "as many columns as there are classes in the labels"
REDUCTIONS = ("sum", "mean", "max")


def _flags(rows: int, columns: int) -> torch.Tensor:
    return (torch.rand(rows, columns, generator=torch.Generator().manual_seed(0)) > 0.5).double()


def graph_conv() -> list[Case]:
    cases = []
    for norm in ("both", "right", "left", "none"):
        options = {"norm": norm, "allow_zero_in_degree": True}
        cases += [Layer("GraphConv", 4, 6, **options).on("gaps", nodes(4))]
        cases += [Layer("GraphConv", 6, 3, **options).on("gaps", nodes(6))]
        weighted = Layer("GraphConv", 4, 3, norm=norm, activation=tanh)
        cases += [weighted.on("full", nodes(4), edge_weight=WEIGHT)]
    plain = Layer("GraphConv", 4, 3)
    given = torch.linspace(-1, 1, 12, dtype=torch.float64).view(4, 3)
    return [
        *cases,
        plain.on("full_pair", pair(4, 4)),
        plain.on("block", nodes(4)),
        plain.on("block", pair(4, 4)),
        plain.on("full", nodes(2, 4)),
        Layer("GraphConv", 4, 4, weight=False, bias=False).on("full", nodes(4)),
        Layer("GraphConv", 4, 3, weight=False).on("full", nodes(4), weight=given),
        Layer("EdgeWeightNorm", "both").on("gaps", WEIGHT).not_traced(POSITIVE),
        Layer("EdgeWeightNorm", "right", eps=0.1).on("gaps", WEIGHT),
        Layer("EdgeWeightNorm", "none").on("gaps", WEIGHT),
        Layer("EdgeWeightNorm").on("pair", WEIGHT).not_traced(POSITIVE),
    ]


def sage_conv() -> list[Case]:
    cases = []
    for kind in ("mean", "gcn", "pool", "lstm"):
        width = 4 if kind == "gcn" else 5
        options = {"bias": False, "activation": tanh, "norm": normalize}
        of_kind = [
            Layer("SAGEConv", 4, 6, kind).on("gaps", nodes(4)),
            Layer("SAGEConv", 6, 3, kind).on("gaps", nodes(6)),
            Layer("SAGEConv", 4, 3, kind, **options).on("gaps", nodes(4), edge_weight=WEIGHT),
            Layer("SAGEConv", (4, width), 3, kind).on("pair", pair(4, width)),
            Layer("SAGEConv", 4, 3, kind).on("block", nodes(4)),
            Layer("SAGEConv", 4, 3, kind, feat_drop=0.5).on("full", nodes(4)).evaluated(),
        ]
        cases += [case.not_traced(MAILBOXES) for case in of_kind] if kind == "lstm" else of_kind
    return cases


def gin_conv() -> list[Case]:
    cases = []
    for reduction in REDUCTIONS:
        options = {"init_eps": 0.3, "learn_eps": True, "activation": tanh}
        full = Layer("GINConv", part("Linear", 4, 3), reduction, **options)
        fixed = Layer("GINConv", None, reduction, init_eps=0.3)
        cases += [full.on("gaps", nodes(4)), fixed.on("pair", pair(4, 4), edge_weight=WEIGHT)]
    gine = Layer("GINEConv", part("Linear", 4, 3), init_eps=0.2, learn_eps=True)
    return [
        *cases,
        Layer("GINConv", part("Linear", 4, 3)).on("block", nodes(4)),
        gine.on("gaps", nodes(4), edges(4)),
        gine.on("pair", pair(4, 4), edges(4)),
        gine.on("block", nodes(4), edges(4)),
        Layer("GINEConv").on("gaps", nodes(4), edges(4)),
    ]


def gat_conv() -> list[Case]:
    cases = []
    for name in ("GATConv", "GATv2Conv"):
        residual = Layer(name, 4, 3, 2, residual=True)
        dropped = Layer(name, 4, 3, 1, feat_drop=0.5, attn_drop=0.5)
        gaps = Layer(name, 4, 3, 2, allow_zero_in_degree=True)
        cases += [
            Layer(name, 4, 3, 2).on("full", nodes(4)),
            residual.on("full", nodes(4)),
            residual.on("block", nodes(4)),
            residual.on("full_pair", pair(4, 4)),
            Layer(name, 4, 3, 2, residual=True, bias=False).on("full", nodes(4)),
            Layer(name, 6, 3, 2, residual=True).on("full", nodes(6)),
            Layer(name, 4, 3, 2, negative_slope=0.5, activation=tanh).on("full", nodes(4)),
            Layer(name, (4, 5), 3, 2, residual=True).on("full_pair", pair(4, 5)),
            gaps.on("gaps", nodes(4), get_attention=True),
            dropped.on("full", nodes(4)).evaluated(),
        ]
    weighted = Layer("GATConv", 4, 3, 2)
    return [
        *cases,
        weighted.on("full", nodes(4), edge_weight=WEIGHT, get_attention=True),
        Layer("GATConv", 4, 3, 2, residual=True).on("full", nodes(2, 4)),
        Layer("GATv2Conv", 4, 3, 2, share_weights=True).on("full", nodes(4)),
        Layer("GATv2Conv", 4, 3, 2, share_weights=True, bias=False).on("block", nodes(4)),
        Layer("GATv2Conv", 4, 3, 2, share_weights=True).on("full_pair", pair(4, 4)),
    ]


def attention_with_edges() -> list[Case]:
    gaps = Layer("EdgeGATConv", 6, 5, 3, 2, allow_zero_in_degree=True)
    egat = Layer("EGATConv", 4, 5, 3, 2, 2)
    bare = Layer("EdgeGATConv", 4, 5, 3, 2, bias=False, activation=tanh)
    return [
        Layer("EdgeGATConv", 4, 5, 3, 2, residual=False).on("full", nodes(4), edges(5)),
        Layer("EdgeGATConv", 4, 5, 3, 2).on("full", nodes(4), edges(5)),
        Layer("EdgeGATConv", 4, 5, 3, 2).on("block", nodes(4), edges(5)),
        Layer("EdgeGATConv", (4, 3), 5, 3, 2).on("full_pair", pair(4, 3), edges(5)),
        bare.on("full", nodes(4), edges(5)),
        gaps.on("gaps", nodes(6), edges(5), get_attention=True),
        egat.on("full", nodes(4), edges(5)),
        egat.on("full", nodes(4), edges(5), edge_weight=WEIGHT, get_attention=True),
        Layer("EGATConv", (4, 6), 5, 3, 2, 2).on("full_pair", pair(4, 6), edges(5)),
    ]


def other_attention() -> list[Case]:
    dot = Layer("DotGatConv", 4, 3, 2)
    bare = Layer("DotGatConv", (4, 5), 3, 2, allow_zero_in_degree=True)
    return [
        dot.on("full", nodes(4), get_attention=True),
        dot.on("block", nodes(4)),
        bare.on("pair", pair(4, 5)),
        Layer("AGNNConv", 0.7).on("full", nodes(4)),
        Layer("AGNNConv", 0.7, False, True).on("gaps", nodes(4)),
        Layer("AGNNConv").on("full_pair", pair(4, 4)),
        Layer("AGNNConv").on("block", nodes(4)),
    ]


def relations() -> list[Case]:
    cases = []
    for regularizer, bases in ((None, None), ("basis", 2), ("basis", 3), ("bdd", 2)):
        layer = Layer("RelGraphConv", 4, 6, 3, regularizer, bases)
        typed = Layer("TypedLinear", 4, 6, 3, regularizer, bases)
        cases += [layer.on("gaps", nodes(4), types("edges", 3))]
        cases += [typed.on(None, nodes(4), types("sources", 3))]
    full = Layer("RelGraphConv", 4, 3, 5, activation=tanh, layer_norm=True)
    bare = Layer("RelGraphConv", 4, 3, 3, self_loop=False, bias=False)
    many = Layer("RelGraphConv", 4, 3, 30)
    for size, options in ((4, {"use_norm": True}), (6, {})):
        hgt = Layer("HGTConv", size, 3, 2, 3, 4, dropout=0.0, **options)
        for kind in ("gaps", "block"):
            cases += [hgt.on(kind, nodes(size), types("sources", 3), types("edges", 4))]
    return [
        *cases,
        Layer("RelGraphConv", 6, 6, 3, "bdd").on("gaps", nodes(6), types("edges", 3)),
        Layer("RelGraphConv", 4, 3, 3).on("block", nodes(4), types("edges", 3)),
        many.on("gaps", nodes(4), types("edges", 30), norm=Input("edges", (1,), "positive")),
        full.on("gaps", nodes(4), types("edges", 5), norm=Input("edges", (1,), "positive")),
        bare.on("block", nodes(4), types("edges", 3)),
        Layer("GatedGraphConv", 3, 5, 2, 3).on("gaps", nodes(3), types("edges", 3)),
        Layer("GatedGraphConv", 3, 3, 2, 1).on("gaps", nodes(3)),
        Layer("GatedGraphConv", 3, 4, 2, 1, bias=False).on("full", nodes(3)),
    ]


def hops() -> list[Case]:
    appnp = Layer("APPNPConv", 3, 0.2)
    dropped = Layer("APPNPConv", 3, 0.2, edge_drop=0.5)
    layers = [
        Layer("TAGConv", 4, 3, k=3, activation=tanh),
        Layer("SGConv", 4, 3, k=2, norm=normalize, allow_zero_in_degree=True),
    ]
    cases = [layer.on("gaps", nodes(4)) for layer in layers]
    weighted = [layer.on("full", nodes(4), edge_weight=WEIGHT) for layer in [appnp, *layers]]
    for project in (True, False):
        sizes = (4, 2, 0.2, 0.7, project, True)
        layer = Layer("GCN2Conv", *sizes, activation=tanh)
        bare = Layer("GCN2Conv", *sizes, bias=False)
        cases += [layer.on("gaps", nodes(4), nodes(4))]
        weighted += [bare.on("full", nodes(4), nodes(4), edge_weight=WEIGHT)]
    for terms in (1, 2, 4):
        cases += [Layer("ChebConv", 4, 3, terms).on("gaps", nodes(4))]
    cheb = Layer("ChebConv", 4, 3, 3, activation=None, bias=False)
    return [
        *cases,
        *[case.not_traced(POSITIVE) for case in weighted],
        cheb.on("batch", nodes(4), lambda_max=[1.5, 1.7, 1.9]).of_fixed_size(),
        cheb.on("batch", nodes(4), Input("graphs", (), "positive")),
        appnp.on("gaps", nodes(4)).without_doubles(),
        appnp.on("full", nodes(2, 4)).without_doubles(),
        dropped.on("full", nodes(4)).without_doubles().evaluated(),
        Layer("TAGConv", 4, 3, bias=False).on("full", nodes(4)),
        Layer("SGConv", 4, 3, 2, True, bias=False).on("full", nodes(4)).of_fixed_size(),
    ]


def networks_of_edges() -> list[Case]:
    cases = []
    for reduction in REDUCTIONS:
        nn_conv = Layer("NNConv", 4, 3, part("Linear", 2, 12), reduction)
        options = {"residual": True, "allow_zero_in_degree": True}
        gmm = Layer("GMMConv", 4, 3, 2, 3, reduction, **options)
        cases += [nn_conv.on("gaps", nodes(4), edges(2)), gmm.on("gaps", nodes(4), edges(2))]
    for width in (5, 3):
        options = {"residual": True, "bias": False}
        nn_conv = Layer("NNConv", (4, width), 3, part("Linear", 2, 12), **options)
        gmm = Layer("GMMConv", (4, width), 3, 2, 3, **options)
        cases += [nn_conv.on("pair", pair(4, width), edges(2))]
        cases += [gmm.on("full_pair", pair(4, width), edges(2))]
    bare = {"batch_norm": False, "residual": False, "activation": None}
    return [
        *cases,
        Layer("CFConv", 4, 2, 5, 3).on("gaps", nodes(4), edges(2)),
        Layer("CFConv", 4, 2, 5, 3).on("pair", pair(4, 4), edges(2)),
        Layer("GatedGCNConv", 4, 4, 4).on("gaps", nodes(4), edges(4)),
        Layer("GatedGCNConv", 4, 4, 4, 0.5).on("gaps", nodes(4), edges(4)).evaluated(),
        Layer("GatedGCNConv", 4, 2, 3, residual=False).on("gaps", nodes(4), edges(2)),
        Layer("GatedGCNConv", 4, 2, 3).on("gaps", nodes(4), edges(2)),
        Layer("GatedGCNConv", 4, 4, 4, **bare).on("gaps", nodes(4), edges(4)),
    ]


def functions_of_both_ends() -> list[Case]:
    cases = []
    for norm in (False, True):
        layer = Layer("EdgeConv", 4, 3, norm)
        gaps = Layer("EdgeConv", 4, 3, norm, allow_zero_in_degree=True)
        cases += [gaps.on("gaps", nodes(4)), layer.on("full", nodes(4)).evaluated()]
        cases += [layer.on("full_pair", pair(4, 4)), layer.on("block", nodes(4))]
    scalers = ["identity", "amplification", "attenuation"]
    single = ("mean", "max", "min", "sum", "std", "var", "moment3", "moment4", "moment5")
    for name in single:
        cases += [Layer("PNAConv", 4, 6, [name], scalers, 1.3).on("simple", nodes(4))]
    towers = {"num_towers": 2, "edge_feat_size": 2}
    pna = Layer("PNAConv", 4, 4, ["mean", "max", "sum"], scalers, 2.5, **towers)
    with_edges = Layer("EGNNConv", 4, 5, 6, edge_feat_size=2)
    radial = (torch.tensor([0.8, 1.2]), torch.tensor([0.5, 1.0]), torch.ones(2))
    distances = Input("edges", (1,), "positive")
    atoms = types("sources", 3, 1)
    return [
        *cases,
        pna.on("batch", nodes(4), edges(2)),
        pna.on("batch", nodes(4), edges(2)).evaluated(),
        Layer("EGNNConv", 4, 5, 6).on("simple", nodes(4), nodes(3)),
        with_edges.on("simple", nodes(4), nodes(3), edges(2)),
        Layer("AtomicConv", *radial, torch.tensor([0.0, 2.0])).on("gaps", atoms, distances),
        Layer("AtomicConv", *radial).on("gaps", nodes(1), distances),
    ]


def types_of_nodes() -> list[Case]:
    etypes = ("follows", "plays", "played", "sells")
    user, game, shop = (Input(ntype, (4,)) for ntype in ("user", "game", "shop"))
    two = {"user": user, "game": game}
    all_types = {**two, "shop": shop}
    graph_convs = {etype: part("GraphConv", 4, 3) for etype in etypes}
    sages = {etype: part("SAGEConv", 4, 3, "mean") for etype in etypes}
    gats = {etype: part("GATConv", 4, 3, 2) for etype in etypes}
    triples = {
        ("user", "follows", "user"): part("SAGEConv", 4, 3, "gcn"),
        ("user", "plays", "game"): part("GINConv", part("Linear", 4, 3)),
    }
    without = {**graph_convs, "follows": part("GraphConv", 4, 3, weight=False)}
    extra = {"follows": (torch.ones(4, 3, dtype=torch.float64),)}
    weights = {"plays": {"edge_weight": Input("plays", (), "positive")}}
    sizes = {"user": 4, ("a", "b", "c"): 2}
    rows = {"user": types("sources", 4), ("a", "b", "c"): types("sources", 2)}
    cases = [
        Layer("HeteroGraphConv", graph_convs, aggregate).on("relations", all_types)
        for aggregate in ("sum", "max", "min", "mean", "stack")
    ]
    return [
        *cases,
        Layer("HeteroGraphConv", sages).on("relations", two),
        Layer("HeteroGraphConv", gats, _joined).on("relations", (all_types, {"game": game})),
        Layer("HeteroGraphConv", without).on("relations", two, extra, mod_kwargs=weights),
        Layer("HeteroGraphConv", triples).on("relation_block", two),
        Layer("HeteroLinear", sizes, 3).on(None, {"user": nodes(4), ("a", "b", "c"): nodes(2)}),
        Layer("HeteroEmbedding", sizes, 3).on(None, rows),
    ]


def _joined(outs: list[torch.Tensor], ntype: str) -> torch.Tensor:
    return torch.cat(outs, dim=1)


def dense() -> list[Case]:
    cases = []
    square, wide = _flags(7, 7), _flags(7, 11)
    for sizes in ((4, 3), (3, 4)):
        both = Layer("DenseGraphConv", *sizes, bias=False)
        right = Layer("DenseGraphConv", *sizes, "right", activation=tanh)
        cases += [both.on(None, square, targets(sizes[0])), right.on(None, wide, nodes(sizes[0]))]
    for terms in (2, 4):
        layer = Layer("DenseChebConv", 4, 3, terms, bias=terms == 2)
        cases += [layer.on(None, square, targets(4), lambda_max=1.7)]
    sage = Layer("DenseSAGEConv", 4, 3, norm=normalize, activation=tanh)
    return [
        *cases,
        Layer("DenseGraphConv", 4, 3, "none").on(None, wide, nodes(4)),
        sage.on(None, square, targets(4)),
        Layer("DenseSAGEConv", 4, 3, bias=False).on(None, wide, pair(4, 4)),
    ]


def around_layers() -> list[Case]:
    cases = [
        Layer("JumpingKnowledge", mode, 4, 3).on(None, [nodes(4), nodes(4), nodes(4)])
        for mode in ("cat", "max", "lstm")
    ]
    flags = Input("sources", (), "flags")
    for labels, options in (
        (types("sources", 3), {}),
        (types("sources", 3, 1), {"norm_type": "row", "clamp": False}),
        (types("sources", 2, 4), {"normalize": True}),
    ):
        masked = Layer("LabelPropagation", 3, 0.4, reset=True, **options)
        both = [
            Layer("LabelPropagation", 3, 0.4, **options).on("gaps", labels),
            masked.on("full", labels, mask=flags),
        ]
        one_hot = labels.shape == (4,)
        cases += both if one_hot else [case.not_traced(CLASSES) for case in both]
    first, second = part("GraphConv", 4, 5), part("SAGEConv", 5, 3, "mean")
    return [
        *cases,
        Layer("Sequential", first, second).on("full", nodes(4)),
        Layer("WeightBasis", (4, 3), 2, 5).on(None),
    ]


def readouts() -> list[Case]:
    gate, features = part("Linear", 4, 1), part("Linear", 4, 3)
    attention = Layer("GlobalAttentionPooling", gate, features)
    cases = []
    for kind in ("batch", "full"):
        cases += [
            Layer("SumPooling").on(kind, nodes(4)),
            Layer("AvgPooling").on(kind, nodes(4)),
            Layer("MaxPooling").on(kind, nodes(4)),
            Layer("SortPooling", 2).on(kind, nodes(4)),
            Layer("SortPooling", 5).on(kind, nodes(4)),
            Layer("WeightAndSum", 4).on(kind, nodes(4)),
            Layer("Set2Set", 4, 3, 2).on(kind, nodes(4)),
            Layer("GlobalAttentionPooling", gate).on(kind, nodes(4)),
            attention.on(kind, nodes(4), get_attention=True),
        ]
    return cases


def dropped() -> list[Case]:
    """Dropout in training, which draws as DGL's does."""
    half = {"feat_drop": 0.5, "attn_drop": 0.5}
    edge_types, node_types = types("edges", 3), types("sources", 2)
    parts = (["mean"], ["identity"], 1.3)
    appnp = Layer("APPNPConv", 3, 0.2, 0.5)
    return [
        Layer("SAGEConv", 4, 3, "mean", feat_drop=0.5).on("full", nodes(4)),
        Layer("SAGEConv", 4, 3, "gcn", feat_drop=0.5).on("full_pair", pair(4, 4)),
        Layer("GATConv", 4, 3, 2, **half).on("full", nodes(4)),
        Layer("GATConv", 4, 3, 2, **half).on("full_pair", pair(4, 4)),
        Layer("GATv2Conv", 4, 3, 2, residual=True, **half).on("full", nodes(4)),
        Layer("GATv2Conv", (4, 5), 3, 2, **half).on("full_pair", pair(4, 5)),
        Layer("EdgeGATConv", 4, 2, 3, 2, **half).on("full", nodes(4), edges(2)),
        Layer("RelGraphConv", 4, 3, 3, dropout=0.5).on("full", nodes(4), edge_types),
        Layer("HGTConv", 4, 3, 2, 2, 3, dropout=0.5).on("full", nodes(4), node_types, edge_types),
        appnp.on("full", nodes(4)).without_doubles(),
        Layer("APPNPConv", 3, 0.2, 0.5)
        .on("full", nodes(4), edge_weight=WEIGHT)
        .not_traced(POSITIVE),
        Layer("GatedGCNConv", 4, 4, 4, 0.5).on("full", nodes(4), edges(4)),
        Layer("PNAConv", 4, 4, *parts, dropout=0.5).on("simple", nodes(4)),
        Layer("DenseSAGEConv", 4, 3, feat_drop=0.5).on(None, _flags(7, 7), targets(4)),
    ]


def links() -> list[Case]:
    rows = [Layer("EdgePredictor", op, 4, 3) for op in ("dot", "cos", "ele", "cat")]
    rows += [Layer("EdgePredictor", "ele"), Layer("EdgePredictor", "cat", 4, 3, True)]
    triples = [Layer("TransE", 3, 4), Layer("TransE", 3, 4, 2), Layer("TransR", 3, 5, 4)]
    return [
        *[layer.on(None, nodes(4), nodes(4)) for layer in rows],
        *[layer.on(None, nodes(4), nodes(4), types("sources", 3)) for layer in triples],
    ]


FAMILIES = (
    graph_conv,
    sage_conv,
    gin_conv,
    gat_conv,
    attention_with_edges,
    other_attention,
    relations,
    hops,
    networks_of_edges,
    functions_of_both_ends,
    types_of_nodes,
    dense,
    around_layers,
    readouts,
    dropped,
    links,
)
CASES = [case for family in FAMILIES for case in family()]
