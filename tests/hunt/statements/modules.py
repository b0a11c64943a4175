"""Statements with parameters: products, modules, PyG's layers."""

from __future__ import annotations

from ..writer import Production, Writer


def product(g: Writer) -> None:
    a = g.rows_of_floats()
    w = g.weight(int(a.dims[1]), 4)
    text = g.one(
        "{a} @ {w}",
        "torch.matmul({a}, {w})",
        "torch.mm({a}, {w})",
        "{a}.matmul(other={w})",
        "F.linear({a}, {w}.t())",
        "torch.einsum('nf,fg->ng', {a}, {w})",
        "F.linear({a}, weight={w}.t(), bias=None)",
    )
    g.let(text.format(a=g.inner(a), w=w.name), (a.dims[0], 4))


def biased(g: Writer) -> None:
    a = g.rows_of_floats()
    w, b = g.weight(4, int(a.dims[1])), g.weight(4)
    text = g.one(
        "F.linear({a}, {w}, {b})",
        "torch.addmm({b}, {a}, {w}.t())",
        "torch.addmm({b}, {a}, {w}.t(), beta=0.5, alpha=2)",
        "F.linear({a}, bias={b}, weight={w})",
        "{a} @ {w}.T + {b}",
    )
    g.let(text.format(a=g.inner(a), w=w.name, b=b.name), (a.dims[0], 4))


def lonely(g: Writer) -> None:
    """A parameter that nothing else uses."""
    w = g.weight(4)
    a = g.float(lambda v: v.dims[-1:] == (4,) and len(v.dims) == 2)
    if g.chance(0.5):
        g.let(f"{a.name} * {w.name}", a.dims)


def gram(g: Writer) -> None:
    a = g.rows_of_floats()
    b = g.float(lambda v: len(v.dims) == 2 and v.rows == a.rows and isinstance(v.dims[1], int))
    g.let(f"{a.name}.t() @ {b.name}", (a.dims[1], b.dims[1]))


def activation(g: Writer) -> None:
    """A module of a pointwise function, in place or not."""
    a = g.float(lambda v: bool(v.dims) and g.editable(v))
    made = g.one(
        "nn.ReLU(inplace=True)",
        "nn.ReLU()",
        "nn.LeakyReLU(0.1, inplace=True)",
        "nn.ELU(inplace=True)",
        "nn.Dropout(0.0, inplace=True)",
        "nn.Dropout(0.0)",
        "nn.SiLU(inplace=True)",
        "nn.Hardtanh()",
        "nn.GELU()",
        "nn.Sigmoid()",
        "nn.Tanh()",
        "nn.Softplus()",
        "nn.PReLU()",
        "nn.Identity()",
        "nn.ReLU6(True)",
        "nn.Threshold(0.1, 0.0, True)",
        "nn.Hardswish(inplace=True)",
        "nn.Softmax(dim=-1)",
    )
    text = f"{g.attribute('act', made)}({a.name})"
    if any(word in made for word in ("nplace", "True", "Dropout", "Identity")):
        g.let_same(text, a, a.fixed and "nplace" in made)
    else:
        g.let(text, a.dims)


def norm(g: Writer) -> None:
    a = g.rows_of_floats()
    w = a.dims[1]
    made = g.one(
        f"nn.BatchNorm1d({w})",
        f"nn.BatchNorm1d({w}, momentum=None)",
        f"nn.BatchNorm1d({w}, affine=False, track_running_stats=False)",
        f"nn.LayerNorm({w})",
        f"nn.LayerNorm({w}, elementwise_affine=False)",
    )
    g.let(f"{g.attribute('norm', made)}({a.name})", a.dims)


def linear(g: Writer) -> None:
    a = g.rows_of_floats()
    w = a.dims[1]
    made = g.one(
        f"nn.Linear({w}, 4)",
        f"nn.Linear({w}, 4, bias=False)",
        f"nn.Sequential(nn.Linear({w}, 4), nn.ReLU(inplace=True))",
        f"nn.Sequential(nn.Linear({w}, 3), nn.Tanh(), nn.Linear(3, 4))",
    )
    g.let(f"{g.attribute('lin', made)}({g.inner(a)})", (a.dims[0], 4))


def embedding(g: Writer) -> None:
    i = g.pick(lambda v: v.kind == "index" and len(v.dims) == 1 and isinstance(v.below, int))
    options = g.one(
        "", "", ", padding_idx=0", ", padding_idx=-1", ", sparse=True", ", max_norm=1.0"
    )
    name = g.attribute("emb", f"nn.Embedding({i.below}, 4{options})")
    g.let(f"{name}({i.name})", (*i.dims, 4))


STATEMENTS: dict[Production, int] = {
    product: 3,
    biased: 2,
    lonely: 1,
    gram: 1,
    activation: 4,
    norm: 2,
    linear: 3,
    embedding: 1,
}


def layer(g: Writer) -> None:
    e = g.pick(lambda v: v.kind == "index" and v.dims[:1] == (2,) and len(v.dims) == 2)
    x = g.float(lambda v: len(v.dims) == 2 and v.rows == e.below and isinstance(v.dims[1], int))
    w = x.dims[1]
    made = g.one(
        f"GCNConv({w}, 4)",
        f"GCNConv({w}, 4, normalize=False)",
        f"GCNConv({w}, 4, add_self_loops=False)",
        f"SAGEConv({w}, 4)",
        f"SAGEConv({w}, 4, aggr='max')",
        f"GraphConv({w}, 4)",
        f"GraphConv({w}, 4, aggr='mean')",
        f"GATConv({w}, 2, heads=2)",
        f"GINConv(nn.Sequential(nn.Linear({w}, 4), nn.ReLU(inplace=True)))",
    )
    extra = ""
    weighted = ("GCN", "Graph")
    if made.startswith(weighted) and g.chance(0.5):
        a = g.float(lambda v: v.dims in (e.dims[1:], (e.dims[1], 1)))
        extra = f", {a.name}" + (".squeeze(-1)" if len(a.dims) == 2 else "")
    g.let(f"{g.attribute('conv', made)}({x.name}, {e.name}{extra})", (x.dims[0], 4))


LAYERS: dict[Production, int] = {layer: 1}
