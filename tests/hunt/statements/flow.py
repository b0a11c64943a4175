"""Statements around statements: modes of gradients, branches on sizes and on data."""

from __future__ import annotations

from ..writer import Production, Writer


def mode(g: Writer) -> None:
    """Some statements with gradients off, perhaps on again inside."""
    with (
        g.inside(g.one("with torch.no_grad():", "with torch.set_grad_enabled(False):")),
        g.without_grad(),
    ):
        g.block(g.draw.randint(1, 3))
        if g.chance(0.4):
            with g.inside(g.one("with torch.enable_grad():", "with torch.set_grad_enabled(True):")):
                with g.without_grad(False):
                    g.block(g.draw.randint(1, 2))


def detached(g: Writer) -> None:
    a = g.float()
    text = g.one(f"{a.name}.detach()", f"{a.name}.data", f"{a.name}.detach().clone()")
    if "clone" in text:
        g.let(text, a.dims, shared=a.shared)
    else:
        g.let_same(text, a)


def detached_product(g: Writer) -> None:
    a = g.float()
    g.let(f"{a.name} * {a.name}.detach()", a.dims)


MODES: dict[Production, int] = {mode: 3, detached: 2, detached_product: 1}


def question(g: Writer) -> str:
    """Something that a program asks about sizes."""
    v = g.pick(lambda v: any(isinstance(d, str) for d in v.dims) and v.name.isidentifier())
    d = g.draw.choice([d for d in v.dims if isinstance(d, str)])
    n = g.size(d)
    return g.one(
        f"{n} == 0",
        f"{n} > 0",
        f"{n} > 1",
        f"{n} == 1",
        f"{v.name}.numel() > 0",
        f"{v.name}.numel() == 0",
        f"{n} != 0",
        f"not {n}",
        f"{n} < 2",
        f"{n} >= 3",
        f"{n}",
        f"{n} > 1 and {n} != 3",
    )


def branch(g: Writer) -> None:
    a = g.float()
    name = g.fresh()
    with g.inside(f"if {question(g)}:"):
        g.line(
            f"{name} = "
            + g.one("{a} * 2", "{a} + 1", "torch.zeros_like({a})", "torch.tanh({a})").format(
                a=a.name
            )
        )
    with g.inside("else:"):
        g.line(f"{name} = " + g.one("{a}", "{a} * 0.5", "-{a}").format(a=a.name))
    g.vars.append(a.itself(name))


def chosen(g: Writer) -> None:
    a = g.float()
    g.let(f"{a.name} * 3 if {question(g)} else {a.name} - 1", a.dims)


def divided(g: Writer) -> None:
    """A mean by hand."""
    a = g.float(lambda v: bool(v.dims) and isinstance(v.dims[0], str))
    n = g.size(a.dims[0])
    text = g.one(
        "{a}.sum(0) / max({n}, 1)",
        "{a}.sum(0) / ({n} or 1)",
        "{a}.sum(dim=0) / {n}",
        "{a}.sum(0) * (1 / max(1, {n}))",
        "{a}.sum(0) / {n} ** 0.5",
        "{a}.sum(0) / float({n} + 1)",
    )
    g.let(text.format(a=a.name, n=n), a.dims[1:])


def scaled(g: Writer) -> None:
    a, b = g.float(), g.float(lambda v: bool(v.dims) and isinstance(v.dims[0], str))
    n = g.size(b.dims[0])
    g.let(
        g.one(
            "{a} * {n}",
            "{a} + {n} % 2",
            "{a} / min({n} + 1, 4)",
            "{a} * ({n} // 2)",
            "{a} * int({n} > 1)",
        ).format(a=a.name, n=n),
        a.dims,
    )


def squeezed_all(g: Writer) -> None:
    """Dims of size 1 dropped, whatever they are, and the number of elements used."""
    a = g.float(lambda v: bool(v.dims) and isinstance(v.dims[0], str))
    g.let(
        g.one("{a}.squeeze().sum()", "{a}.squeeze(0).sum()", "{a}.squeeze().mean()").format(
            a=a.name
        ),
        (),
    )


def returned_early(g: Writer) -> None:
    a = g.float()
    with g.inside(f"if {question(g)}:"):
        g.line(f"return {a.name}" + g.one("", " * 2", ".clone()"))


def filled(g: Writer) -> None:
    a = g.float(lambda v: bool(v.dims))
    sizes = ", ".join(g.size(d) for d in a.dims)
    g.let(
        g.one(
            "torch.zeros({s}, dtype={a}.dtype)",
            "torch.ones({s}, dtype={a}.dtype)",
            "{a}.new_zeros({s})",
            "torch.full(({s},), 0.5, dtype={a}.dtype)",
            "torch.ones_like({a})",
            "torch.zeros_like({a})",
            "{a}.new_full(({s},), 2.0)",
        ).format(a=a.name, s=sizes),
        a.dims,
    )


SIZES: dict[Production, int] = {
    branch: 4,
    chosen: 2,
    divided: 3,
    scaled: 2,
    squeezed_all: 1,
    returned_early: 1,
    filled: 2,
}


def asserted(g: Writer) -> None:
    a = g.float()
    g.line(
        g.one(
            "assert ({a}.abs() >= 0).all()",
            "assert ({a} > -2).all(), 'too small'",
            "assert {a}.size(-1) >= 0",
            "torch._assert({a}.dim() >= 0, 'dims')",
        ).format(a=a.name)
        if a.dims
        else "pass"
    )


def data_branch(g: Writer) -> None:
    a = g.float()
    m = g.float(lambda v: bool(v.dims))
    text = g.one(
        "{a} * 2 if ({m} > 0).any() else {a}",
        "{a} * bool(({m} > 0).any())",
        "{a} / (({m} > 0).sum().item() or 1)",
        "{a} * int(({m} > 0).sum() > 1)",
        "{a} / max(int(({m} > 0).sum()), 1)",
        "{a} * (({m} > 0).sum().item() > 2)",
    )
    g.let_same(text.format(a=a.name, m=m.name), a)


def trained(g: Writer) -> None:
    if g.module:
        a = g.float()
        g.let_same(
            g.one(
                f"{a.name} * 2 if self.training else {a.name}",
                f"F.dropout({a.name}, 0.0, self.training)",
            ),
            a,
        )


DATA: dict[Production, int] = {asserted: 2, data_branch: 2, trained: 2}
