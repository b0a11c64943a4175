"""Statements that reduce: along columns, along rows, over everything."""

from __future__ import annotations

from ..writer import Dims, Production, Var, Writer

COLUMNS = (
    "{a}.sum({d})",
    "{a}.sum({dim}={d}, {keep}=True)",
    "torch.sum({a}, {dim}={d})",
    "torch.sum({a}, {d}, True)",
    "{a}.mean({dim}={d})",
    "torch.mean({a}, {d}, keepdim=True)",
    "{a}.mean({dim}={d}, {keep}=True)",
    "{a}.amax({d})",
    "torch.amax({a}, {dim}={d}, {keep}=True)",
    "{a}.amin({dim}={d})",
    "{a}.max({d}).values",
    "{a}.max({dim}={d}, {keep}=True)[0]",
    "torch.min({a}, {d})[0]",
    "{a}.prod({d})",
    "torch.prod({a}, {dim}={d}, {keep}=True)",
    "{a}.norm(dim={d})",
    "torch.linalg.vector_norm({a}, dim={d})",
    "{a}.std({d})",
    "{a}.var(dim={d}, unbiased=False)",
    "torch.var({a}, {d}, correction=0, keepdim=True)",
    "torch.logsumexp({a}, {d})",
    "{a}.contiguous().median(dim={d}).values",  # of an expanded tensor torch reads any memory
)
SAME = (
    "F.softmax({a}, dim={d})",
    "{a}.softmax({d})",
    "F.log_softmax({a}, {d})",
    "torch.softmax({a}, dim={d}, dtype={a}.dtype)",
    "F.normalize({a}, dim={d})",
    "F.normalize({a}, p=1.0, dim={d})",
    "{a} - {a}.mean({d}, keepdim=True)",
    "{a} / ({a}.abs().sum({dim}={d}, {keep}=True) + 1)",
    "torch.cumsum({a}, {dim}={d})",
    "{a}.cumsum({d})",
    "F.layer_norm({a}, ({a}.size(-1),))",
    "torch.flip({a}, (-1,))",
    "torch.sort({a}, dim={d}).values",
)
TOTAL = (
    "{a}.sum()",
    "torch.sum({a})",
    "{a}.mean()",
    "{a}.max()",
    "{a}.min()",
    "torch.amax({a}, dim=({every}))",
    "{a}.abs().max()",
    "{a}.norm()",
    "{a}.std()",
    "{a}.var(unbiased=False)",
    "{a}.prod()",
    "{a}.sum(dtype=torch.float64)",
    "torch.sum({a}, dim=None)",
    "F.mse_loss({a}, torch.zeros_like({a}))",
    "F.l1_loss({a}, {a}.detach() + 1, reduction='sum')",
    "(({a} * {a}).sum() + 1e-3).sqrt()",
)


def names(g: Writer) -> tuple[str, str]:
    """NumPy's names of arguments, or torch's."""
    return ("axis", "keepdims") if g.chance(0.3) else ("dim", "keepdim")


def columns(g: Writer) -> None:
    a = g.rows_of_floats()
    reduced(g, a, -1, g.one("-1", "1"))


def leading(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) in (1, 2))
    reduced(g, a, 0, "0")


def reduced(g: Writer, a: Var, axis: int, text: str) -> None:
    dim, keep = names(g)
    form = g.draw.choice(COLUMNS)
    kept = "True" in form
    dims: list[int | str] = list(a.dims)
    if kept:
        dims[axis] = 1
    else:
        del dims[axis]
    g.let(form.format(a=g.inner(a), d=text, dim=dim, keep=keep), dims)


def along(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) == 2)
    dim, keep = names(g)
    d = g.one("-1", "-1", "1", "0")
    g.let(g.draw.choice(SAME).format(a=g.inner(a), d=d, dim=dim, keep=keep), a.dims)


def total(g: Writer) -> None:
    a = g.float(lambda v: bool(v.dims))
    every = ", ".join(str(k) for k in range(len(a.dims))) + ","
    form = g.draw.choice(TOTAL)
    v = g.let(form.format(a=g.inner(a), every=every), ())
    if "float64" in form:
        g.line(f"{v.name} = {v.name}.to({a.name}.dtype)")


def places(g: Writer) -> None:
    """Integers that a reduction gives."""
    a = g.rows_of_floats()
    text = g.one(
        "{a}.argmax(-1)", "{a}.max(-1)[1]", "torch.argmin({a}, dim=1)", "{a}.max(1).indices"
    )
    g.let(text.format(a=a.name), a.dims[:1], "index", a.dims[1])


def counted(g: Writer) -> None:
    """Truths over an axis or everything."""
    m = g.pick(lambda v: v.kind == "bool" and bool(v.dims))
    text = g.one("{m}.any()", "{m}.all()", "{m}.sum()", "torch.any({m})")
    if g.chance(0.3) and len(m.dims) == 2:
        dims: Dims = m.dims[:1]
        g.let(g.one(f"{m.name}.any(-1)", f"{m.name}.all(dim=1)"), dims, "bool")
        return
    g.let(text.format(m=m.name), (), "integer")


STATEMENTS: dict[Production, int] = {columns: 4, along: 2}
TOTALS: dict[Production, int] = {leading: 3, total: 3, places: 1, counted: 1}
