"""Statements that change shapes: views, copies and joins."""

from __future__ import annotations

from dataclasses import replace

from ..writer import Nothing, Production, Writer


def pair_of_columns(g: Writer) -> None:
    """[n, 2k] as [n, 2, k] and back."""
    a = g.float(lambda v: len(v.dims) == 2 and v.dims[1] in (2, 4, 6, 8))
    half = int(a.dims[1]) // 2
    text = g.one("{a}.view(-1, 2, {h})", "{a}.reshape({n}, 2, {h})", "{a}.unflatten(-1, (2, {h}))")
    if a.name.startswith("self"):
        raise Nothing
    rows = g.size(a.dims[0])
    if "view(-1" in text and a.dims[0] != 0 and g.chance(0.5):
        text = "{a}.reshape(-1, 2, {h})"
    g.let(text.format(a=a.name, h=half, n=rows), (a.dims[0], 2, half), of=a)


def flattened(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) == 3 and all(isinstance(d, int) for d in v.dims[1:]))
    wide = int(a.dims[1]) * int(a.dims[2])
    text = g.one("{a}.flatten(1)", "{a}.reshape({n}, {w})", "torch.flatten({a}, start_dim=1)")
    g.let(text.format(a=a.name, n=g.size(a.dims[0]), w=wide), (a.dims[0], wide), of=a)


def inner_axis(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) == 3)
    n, k, h = a.dims
    text, dims = g.draw.choice(
        [
            ("{a}.sum(1)", (n, h)),
            ("{a}.mean(dim=1)", (n, h)),
            ("{a}.transpose(1, 2)", (n, h, k)),
            ("{a}.permute(0, 2, 1).contiguous()", (n, h, k)),
            ("{a}[:, 0]", (n, h)),
            ("{a}.select(1, 1)", (n, h)),
            ("{a}.max(dim=1).values", (n, h)),
        ]
    )
    view = any(w in text for w in ("transpose", "[:", "select"))
    copied = a if "contiguous" in text else None
    g.let(text.format(a=a.name), dims, of=a if view else None, within=copied)


def column_axis(g: Writer) -> None:
    """[n] as [n, 1]."""
    a = g.float(lambda v: len(v.dims) == 1)
    text = g.one(
        "{a}.unsqueeze(-1)",
        "{a}.view(-1, 1)",
        "{a}[:, None]",
        "{a}.reshape(-1, 1)",
        "{a}.unsqueeze(dim=1)",
    )
    g.let(text.format(a=a.name), (*a.dims, 1), of=a)


def squeezed(g: Writer) -> None:
    """[n, 1] as [n]."""
    a = g.float(lambda v: len(v.dims) == 2 and v.dims[1] == 1)
    text = g.one(
        "{a}.squeeze(-1)",
        "{a}.squeeze(1)",
        "{a}.view(-1)",
        "{a}[:, 0]",
        "{a}.flatten()",
        "{a}.reshape(-1)",
    )
    g.let(text.format(a=a.name), a.dims[:1], of=a)


def row_axis(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) == 1)
    g.let(g.one(f"{a.name}.unsqueeze(0)", f"{a.name}[None]"), (1, *a.dims), of=a)


def transposed(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) == 2)
    text = g.one(
        "{a}.t()",
        "{a}.T",
        "{a}.transpose(0, 1)",
        "{a}.permute(1, 0)",
        "torch.transpose({a}, 0, 1)",
        "{a}.t().contiguous()",
        "{a}.mT",
    )
    view = "contiguous" not in text
    g.let(text.format(a=a.name), a.dims[::-1], of=a if view else None, within=a)


def joined_columns(g: Writer) -> None:
    a = g.rows_of_floats()
    b = g.float(lambda v: len(v.dims) == 2 and v.rows == a.rows and isinstance(v.dims[1], int))
    wide = int(a.dims[1]) + int(b.dims[1])
    if wide > 12:
        raise Nothing
    text = g.one(
        "torch.cat([{a}, {b}], dim=-1)",
        "torch.cat([{a}, {b}], 1)",
        "torch.cat([{a}, {b}], axis=1)",
        "torch.cat(({a}, {b}), axis=-1)",
        "torch.cat(tensors=[{a}, {b}], dim=1)",
        "torch.hstack([{a}, {b}])",
        "torch.concat([{a}, {b}], dim=-1)",
    )
    g.let(text.format(a=g.inner(a), b=g.inner(b)), (a.dims[0], wide))


def joined_rows(g: Writer) -> None:
    a = g.rows_of_floats()
    b = g.float(lambda v: len(v.dims) == 2 and v.dims[1] == a.dims[1])
    v = g.let(
        g.one(
            "torch.cat([{a}, {b}])", "torch.cat([{a}, {b}], dim=0)", "torch.vstack(({a}, {b}))"
        ).format(a=a.name, b=b.name),
        (f"R{g.count + 1}", a.dims[1]),
    )
    n = g.size(a.dims[0])
    if g.chance(0.5):
        g.let(f"{v.name}[:{n}]", a.dims, of=v)


def stacked(g: Writer) -> None:
    a = g.rows_of_floats()
    b = g.float(lambda v: v.dims == a.dims)
    text = g.one(
        "torch.stack([{a}, {b}], dim=1)",
        "torch.stack([{a}, {b}], axis=1)",
        "torch.stack(({a}, {b}), 1)",
    )
    g.let(text.format(a=a.name, b=b.name), (a.dims[0], 2, a.dims[1]))


def cut(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) == 2 and v.dims[1] in (2, 4, 6, 8))
    half = int(a.dims[1]) // 2
    text = g.one(
        "{a}.chunk(2, dim=-1)",
        "{a}.split({h}, -1)",
        "torch.chunk({a}, 2, 1)",
        "torch.split({a}, {h}, dim=1)",
    )
    x, y = g.fresh(), g.fresh()
    g.line(f"{x}, {y} = " + text.format(a=a.name, h=half))
    for name in (x, y):
        g.vars.append(replace(a, name=name, dims=(a.dims[0], half), memory=a.owner, place=""))


def some_columns(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) == 2 and isinstance(v.dims[1], int) and v.dims[1] >= 2)
    w = int(a.dims[1])
    text, dims = g.draw.choice(
        [
            ("{a}[:, :2]", (a.dims[0], 2)),
            ("{a}[:, 1:]", (a.dims[0], w - 1)),
            ("{a}[:, 0]", a.dims[:1]),
            ("{a}[:, -1]", a.dims[:1]),
            ("{a}[..., :1]", (a.dims[0], 1)),
            ("{a}.narrow(1, 0, 2)", (a.dims[0], 2)),
            ("{a}.select(1, 1)", a.dims[:1]),
            ("{a}[:, ::2]", (a.dims[0], (w + 1) // 2)),
            ("{a}[:, [1, 0]]", (a.dims[0], 2)),
            ("{a}.unbind(1)[0]", a.dims[:1]),
        ]
    )
    g.let(text.format(a=a.name), dims, of=a)


def some_rows(g: Writer) -> None:
    a = g.float(lambda v: bool(v.dims) and isinstance(v.dims[0], str))
    rest = a.dims[1:]
    text, dims = g.draw.choice(
        [
            ("{a}[1:]", (f"R{g.count + 1}", *rest)),
            ("{a}[:2]", (f"R{g.count + 1}", *rest)),
            ("{a}[-1]", rest),
            ("{a}[0]", rest),
            ("{a}[:-1]", (f"R{g.count + 1}", *rest)),
            ("{a}.narrow(0, 0, 1)", (1, *rest)),
            ("{a}[::2]", (f"R{g.count + 1}", *rest)),
        ]
    )
    g.let(text.format(a=a.name), dims, of=a)


def wider(g: Writer) -> None:
    a = g.float(lambda v: len(v.dims) == 2 and v.dims[1] == 1)
    text = g.one(
        "{a}.expand(-1, 3)", "{a}.repeat(1, 3)", "{a}.expand({n}, 3)", "{a}.broadcast_to({n}, 3)"
    )
    view = "repeat" not in text
    g.let(
        text.format(a=a.name, n=g.size(a.dims[0])),
        (a.dims[0], 3),
        of=a if view else None,
        shared=view,
    )


def same_tensor(g: Writer) -> None:
    """A view or the tensor itself."""
    a = g.float()
    text = g.one(
        "{a}.view_as({a})",
        "{a}.contiguous()",
        "{a}[...]",
        "{a}.to({a}.dtype)",
        "{a}.reshape({a}.shape)",
        "{a}.detach()",
        "{a}.data",
        "{a}",
    )
    loose = "detach" in text or "data" in text
    g.let_same(text.format(a=a.name), a, a.fixed and not loose)


def row_repeated(g: Writer) -> None:
    """A single row for each of many."""
    a = g.float(lambda v: len(v.dims) == 2 and v.dims[0] == 1)
    n = g.float(lambda v: bool(v.dims) and isinstance(v.dims[0], str))
    text = g.one("{a}.expand({n}, -1)", "{a}.repeat({n}, 1)")
    g.let(text.format(a=a.name, n=g.size(n.dims[0])), (n.dims[0], a.dims[1]), within=a, shared=True)


STATEMENTS: dict[Production, int] = {
    pair_of_columns: 2,
    flattened: 2,
    inner_axis: 2,
    column_axis: 2,
    squeezed: 2,
    transposed: 1,
    joined_columns: 2,
    stacked: 1,
    wider: 1,
    same_tensor: 2,
}
SLICES: dict[Production, int] = {
    cut: 2,
    some_columns: 3,
    some_rows: 2,
    joined_rows: 1,
    row_axis: 1,
    row_repeated: 1,
}
