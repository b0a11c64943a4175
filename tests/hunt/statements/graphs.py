"""Statements on graphs: gathers, scatters, PyG's functions, integers and masks."""

from __future__ import annotations

from ..writer import Nothing, Production, Var, Writer


def index(g: Writer, below: object = None) -> tuple[str, Var]:
    """An index along rows, as a text; a row of edge_index counts as one."""
    v = g.pick(
        lambda v: (
            v.kind == "index"
            and (below is None or v.below == below)
            and (len(v.dims) == 1 or (len(v.dims) == 2 and v.dims[0] == 2))
        )
    )
    if len(v.dims) == 1:
        return v.name, v
    side = g.one("0", "1")
    return f"{v.name}[{side}]", Var(f"{v.name}[{side}]", v.dims[1:], "index", v.below)


def gathered(g: Writer) -> None:
    text, i = index(g)
    x = g.float(lambda v: bool(v.dims) and v.dims[0] == i.below)
    form = g.one(
        "{x}[{i}]",
        "{x}[{i}]",
        "torch.index_select({x}, 0, {i})",
        "{x}.index_select(dim=0, index={i})",
    )
    if len(x.dims) == 2:
        form = g.one(form, form, "F.embedding({i}, {x})", "{x}[{i}, :]")
    g.let(form.format(x=g.inner(x), i=text), (*i.dims, *x.dims[1:]))


def scattered(g: Writer) -> None:
    text, i = index(g)
    m = g.float(lambda v: bool(v.dims) and v.dims[:1] == i.dims and len(v.dims) <= 2)
    n = g.size(i.below) if i.below is not None else "1"
    reduce = g.one("sum", "mean", "max", "min", "mul") if g.chance(0.8) else "add"
    rest = m.dims[1:]
    wide = "".join(f", {d}" for d in rest)
    where = text if not rest else f"{text}.view(-1, 1).expand(-1, {rest[0]})"
    form = g.one(
        "scatter({m}, {i}, dim=0, dim_size={n}, reduce='{r}')",
        "scatter({m}, {i}, 0, {n}, '{r}')",
        "torch.zeros({n}{w}, dtype={m}.dtype).index_add(0, {i}, {m})",
        "torch.zeros({n}{w}, dtype={m}.dtype).index_add_(0, {i}, {m})",
        "torch.zeros({n}{w}, dtype={m}.dtype).index_add(0, {i}, {m}, alpha=0.5)",
        "{m}.new_zeros({n}{w}).index_add_(dim=0, index={i}, source={m})",
        "torch.ones({n}{w}, dtype={m}.dtype).scatter_add(0, {where}, {m})",
        "{m}.new_zeros({n}{w}).scatter_reduce(0, {where}, {m}, 'amax', include_self=False)",
        "{m}.new_ones({n}{w}).scatter_reduce_(0, {where}, {m}, reduce='sum')",
        "{m}.new_zeros({n}{w}).index_reduce(0, {i}, {m}, 'mean')",
    )
    g.let(form.format(m=m.name, i=text, n=n, r=reduce, w=wide, where=where), (i.below or 1, *rest))


def attention(g: Writer) -> None:
    text, i = index(g)
    m = g.float(lambda v: v.dims[:1] == i.dims and len(v.dims) in (1, 2))
    n = g.size(i.below) if i.below is not None else "1"
    form = g.one(
        "softmax({m}, {i}, num_nodes={n})",
        "softmax({m}, index={i}, num_nodes={n})",
        "softmax({m}, {i}, None, {n})",
    )
    g.let(form.format(m=m.name, i=text, n=n), m.dims)


def degrees(g: Writer) -> None:
    text, i = index(g)
    x = g.float()
    n = g.size(i.below) if i.below is not None else "1"
    g.let(f"degree({text}, {n}, dtype={x.name}.dtype)", (i.below or 1,))


def pooled(g: Writer) -> None:
    b = g.pick(lambda v: v.kind == "index" and len(v.dims) == 1 and isinstance(v.below, int))
    x = g.float(lambda v: len(v.dims) == 2 and v.rows == b.dims[0])
    name = g.one("global_add_pool", "global_mean_pool", "global_max_pool")
    form = g.one("{f}({x}, {b}, {n})", "{f}({x}, {b}, size={n})", "{f}(x={x}, batch={b}, size={n})")
    g.let(form.format(f=name, x=x.name, b=b.name, n=b.below), (int(b.below or 1), x.dims[1]))


def spread(g: Writer) -> None:
    """A whole step of messages."""
    e = g.pick(lambda v: v.kind == "index" and v.dims[:1] == (2,) and len(v.dims) == 2)
    x = g.float(lambda v: len(v.dims) == 2 and v.rows == e.below)
    row, col = g.fresh(), g.fresh()
    g.line(f"{row}, {col} = {e.name}" + g.one("", ".unbind(0)", f"[0], {e.name}[1]"))
    for name in (row, col):
        g.vars.append(Var(name, e.dims[1:], "index", e.below))
    m = f"{x.name}[{row}]"
    if g.chance(0.5):
        w = g.float(lambda v: v.dims in (e.dims[1:], (e.dims[1], 1), (e.dims[1], x.dims[1])))
        m += f" * {w.name}" + (".view(-1, 1)" if len(w.dims) == 1 else "")
    reduce = g.one("sum", "mean", "max")
    g.let(f"scatter({m}, {col}, dim=0, dim_size={x.name}.size(0), reduce='{reduce}')", x.dims)


def picked(g: Writer) -> None:
    """One column for each row."""
    k = g.pick(lambda v: v.kind == "index" and len(v.dims) == 1 and isinstance(v.below, int))
    x = g.float(lambda v: len(v.dims) == 2 and v.rows == k.dims[0] and v.dims[1] == k.below)
    form = g.one(
        "{x}.gather(1, {k}.unsqueeze(-1))",
        "torch.gather({x}, dim=1, index={k}.view(-1, 1))",
        "F.one_hot({k}, {n}).to({x}.dtype) * {x}",
    )
    dims = (x.dims[0], 1) if "gather" in form else x.dims
    g.let(form.format(x=x.name, k=k.name, n=k.below), dims)


STATEMENTS: dict[Production, int] = {
    gathered: 5,
    scattered: 5,
    attention: 1,
    degrees: 1,
    pooled: 1,
    spread: 4,
    picked: 1,
}


# ---------------------------------------------------------------- integers


def edges_changed(g: Writer) -> None:
    e = g.pick(lambda v: v.kind == "index" and v.dims[:1] == (2,) and len(v.dims) == 2)
    form = g.one(
        "{e}.flip(0)",
        "torch.stack([{e}[1], {e}[0]])",
        "{e}.clone()",
        "{e}[[1, 0]]",
        "torch.flip({e}, dims=[0])",
    )
    g.let(form.format(e=e.name), e.dims, "index", e.below)


def ends(g: Writer) -> None:
    e = g.pick(lambda v: v.kind == "index" and v.dims[:1] == (2,) and len(v.dims) == 2)
    g.let(
        g.one(f"{e.name}[0]", f"{e.name}[1]", f"{e.name}.select(0, 1)"),
        e.dims[1:],
        "index",
        e.below,
        of=e,
    )


def arithmetic(g: Writer) -> None:
    """Integers that may be an index again."""
    i = g.pick(lambda v: v.kind in ("index", "integer") and len(v.dims) == 1)
    below = i.below if isinstance(i.below, int) else None
    form, kind, low = g.draw.choice(
        [
            ("{i} + 1", "integer", None),
            ("{i} * 2 - 3", "integer", None),
            ("{i} // 2", i.kind, i.below),
            ("{i} % 2", "index", 2),
            ("torch.remainder({i}, 3)", "index", 3),
            ("torch.div({i}, 2, rounding_mode='trunc')", i.kind, i.below),
            ("{i} - 1", "integer", below),
            ("-{i}", "integer", None),
            ("{i}.clamp(max=1)", "integer", None),
            ("{i} & 1", "index", 2),
            ("({i} > 0).long()", "index", 2),
            ("{i}.bitwise_xor(1)", "integer", None),
            ("torch.minimum({i}, {i}.flip(0))", "integer", None),
        ]
    )
    g.let(form.format(i=i.name), i.dims, kind, low if kind == "index" else None)


def masks(g: Writer) -> None:
    i = g.pick(lambda v: v.kind in ("index", "integer") and len(v.dims) == 1)
    j = g.pick(lambda v: v.kind in ("index", "integer") and v.dims == i.dims)
    form = g.one(
        "{i} != {j}",
        "{i} < {j}",
        "{i} == 0",
        "torch.ne({i}, {j})",
        "~({i} > 1)",
        "({i} > 0) & ({j} < 2)",
    )
    g.let(form.format(i=i.name, j=j.name), i.dims, "bool")


def as_floats(g: Writer) -> None:
    i = g.pick(lambda v: v.kind in ("index", "integer", "bool") and len(v.dims) <= 1)
    x = g.float()
    g.let(
        g.one(
            "{i}.to({x}.dtype)", "{i} * torch.ones((), dtype={x}.dtype)", "{i}.type_as({x})"
        ).format(i=i.name, x=x.name),
        i.dims,
    )


def kept(g: Writer) -> None:
    """Some rows, by a mask."""
    m = g.pick(lambda v: v.kind == "bool" and len(v.dims) == 1 and isinstance(v.dims[0], str))
    few = f"M{g.count}"
    if g.chance(0.5):
        e = g.pick(lambda v: v.kind == "index" and len(v.dims) == 2 and v.dims[1] == m.dims[0])
        g.let(f"{e.name}[:, {m.name}]", (2, few), "index", e.below)
        if g.chance(0.6):
            w = g.float(lambda v: v.dims[:1] == m.dims)
            g.let(f"{w.name}[{m.name}]", (few, *w.dims[1:]))
        return
    x = g.float(lambda v: v.dims[:1] == m.dims)
    g.let(
        g.one("{x}[{m}]", "{x}[{m}.nonzero().view(-1)]").format(x=x.name, m=m.name),
        (few, *x.dims[1:]),
    )


def numbered(g: Writer) -> None:
    x = g.float(lambda v: bool(v.dims) and isinstance(v.dims[0], str))
    g.let(f"torch.arange({g.size(x.dims[0])})", x.dims[:1], "index", x.dims[0])


def embedded(g: Writer) -> None:
    i = g.pick(lambda v: v.kind == "index" and len(v.dims) == 1 and isinstance(v.below, int))
    w = g.weight(int(i.below or 1), 4)
    if w.fixed and not g.chance(0.9):
        raise Nothing
    form = g.one(
        "F.embedding({i}, {w})",
        "{w}[{i}]",
        "F.embedding({i}, {w}, padding_idx=0)",
        "F.embedding({i}, {w}, padding_idx=-1)",
        "F.embedding(input={i}, weight={w})",
    )
    g.let(form.format(i=i.name, w=w.name), (*i.dims, 4))


INTEGERS: dict[Production, int] = {
    edges_changed: 2,
    ends: 3,
    arithmetic: 3,
    masks: 2,
    as_floats: 2,
    kept: 2,
    numbered: 1,
    embedded: 2,
}
