"""Statements that edit tensors in place, openly or not, and state that outlives a call."""

from __future__ import annotations

from ..writer import Production, Var, Writer


def target(g: Writer) -> Var:
    return g.float(lambda v: bool(v.dims) and g.editable(v))


def edit(g: Writer) -> None:
    """An edit of a tensor by itself or a number."""
    a = target(g)
    text = g.one(
        "{a}.add_(1)",
        "{a}.mul_(0.5)",
        "{a} += 1",
        "{a} *= 2",
        "{a} -= 0.1",
        "{a} /= 2",
        "{a}.clamp_(min=0)",
        "{a}.relu_()",
        "F.relu_({a})",
        "torch.relu_({a})",
        "{a}.tanh_()",
        "{a}.sigmoid_()",
        "{a}.neg_()",
        "{a}.abs_()",
        "{a}.zero_()",
        "{a}.fill_(0.5)",
        "{a}.clamp_(-1, 1)",
        "torch.clamp_({a}, max=0.5)",
        "{a}.sub_(1)",
        "{a}.div_(3)",
        "{a}.mul_(other=2)",
        "F.leaky_relu_({a}, 0.2)",
        "{a}.exp_().clamp_(max=2)",
    )
    g.line(text.format(a=a.name))


def edit_by(g: Writer) -> None:
    """An edit by another tensor."""
    a = target(g)
    b = g.editor_of(a)
    text = g.one(
        "{a}.add_({b})",
        "{a} += {b}",
        "{a}.mul_({b})",
        "{a} *= {b}",
        "{a}.add_({b}, alpha=0.5)",
        "{a}.sub_({b}, alpha=2)",
        "{a}.copy_({b})",
        "{a}.add_(0.1, {b})",
        "{a}.addcmul_({b}, {b}, value=0.5)",
        "{a}.lerp_({b}, 0.5)",
        "{a}.div_({b}.abs() + 1)",
        "{a} -= {b}",
        "{a}[...] = {b}",
        "torch.add({a}, {b}, out={a}.detach())",
    )
    g.line(text.format(a=a.name, b=b.name))


def assign(g: Writer) -> None:
    """An assignment to columns, rows or masked places."""
    a = g.float(lambda v: len(v.dims) == 2 and isinstance(v.dims[1], int) and g.editable(v))
    text = g.one(
        "{a}[:, 0] = 0",
        "{a}[:, 0] = 1.5",
        "{a}[:, -1] = {a}[:, 0] * 2",
        "{a}[:, :1] += 1",
        "{a}[:, 0].mul_(2)",
        "{a}[:1] = 0",
        "{a}[1:] = 2.0",
        "{a}[::2] *= 2",
        "{a}[{a} > 0] = 0.5",
        "{a}[{a} < 0] *= 0.1",
        "{a}[..., 0] -= 1",
        "{a}.t().mul_(0.5)",
        "{a}.view(-1).add_(1)",
        "{a}[:, 0].copy_({a}[:, -1])",
        "{a}.select(1, 0).zero_()",
        "{a}[:, 0] = {a}.sum(-1)",
        "{a}.narrow(1, 0, 1).fill_(1)",
        "{a}.masked_fill_({a} > 1, 0.0)",
        "{a}.transpose(0, 1).relu_()",
    )
    g.line(text.format(a=a.name))


def assign_rows(g: Writer) -> None:
    a = g.float(lambda v: bool(v.dims) and g.editable(v))
    i = g.index_into(a.dims[0])
    text = g.one(
        "{a}[{i}] = 0",
        "{a}[{i}] = 1.0",
        "{a}.index_fill_(0, {i}, 2.0)",
        "{a}.index_add_(0, {i}, {a}[{i}])",
    )
    g.line(text.format(a=a.name, i=i.name))


def assign_masked(g: Writer) -> None:
    a = g.float(lambda v: bool(v.dims) and g.editable(v))
    m = g.mask(a.dims[0])
    text = g.one("{a}[{m}] = 0", "{a}[{m}] = {a}[{m}] * 2", "{a}[~{m}] = 0.5", "{a}[{m}] += 1")
    g.line(text.format(a=a.name, m=m.name))


def flagged(g: Writer) -> None:
    """A function with its flag of edits."""
    a = target(g)
    text = g.one(
        "F.relu({a}, True)",
        "F.relu({a}, inplace=True)",
        "F.leaky_relu({a}, 0.1, True)",
        "F.elu({a}, 1.0, True)",
        "F.leaky_relu({a}, negative_slope=0.1, inplace=True)",
        "F.dropout({a}, 0.0, True, True)",
        "F.silu({a}, True)",
        "F.hardtanh({a}, -1.0, 1.0, True)",
        "F.relu6({a}, True)",
        "F.selu({a}, True)",
        "F.threshold({a}, 0.1, 0.0, True)",
        "F.dropout({a}, p=0.0, training=True, inplace=True)",
        "F.celu({a}, 1.0, inplace=True)",
    )
    if g.chance(0.5):
        g.line(text.format(a=a.name))
    else:
        g.let_same(text.format(a=a.name), a, a.fixed)


def result_of_edit(g: Writer) -> None:
    a = target(g)
    text = g.one("{a}.add_(1)", "{a}.mul_(2)", "{a}.relu_()", "F.relu_({a})", "{a}.clamp_(min=0)")
    g.let_same(text.format(a=a.name), a, a.fixed)


STATEMENTS: dict[Production, int] = {edit: 4, edit_by: 4, assign: 3, flagged: 3, result_of_edit: 1}


def unseen(g: Writer) -> None:
    """An edit that autograd does not see."""
    a = g.float(lambda v: bool(v.dims) and not v.shared)
    text = g.one(
        "{a}.data.mul_(2)",
        "{a}.detach().add_(1)",
        "{a}.data.clamp_(min=0)",
        "{a}.data[:1] = 0.5",
        "{a}.detach().zero_()",
        "{a}.data.copy_({a}.data * 2)",
    )
    g.line(text.format(a=a.name))


def under_no_grad(g: Writer) -> None:
    a = g.float(lambda v: bool(v.dims) and not v.shared)
    with g.inside("with torch.no_grad():"), g.without_grad():
        text = g.one(
            "{a}.clamp_(min=0)",
            "{a}.mul_(0.5)",
            "{a}.add_({a})",
            "{a} += 1",
            "{a}.copy_({a} * 2)",
            "{a}[:1] = 0",
        )
        g.line(text.format(a=a.name))


HIDDEN: dict[Production, int] = {unseen: 2, under_no_grad: 3, assign_rows: 1, assign_masked: 1}


def buffer(g: Writer) -> None:
    """A buffer that counts or averages, perhaps read again."""
    name = f"self.buf{len(g.made)}"
    short = name.removeprefix("self.")
    a = g.float(lambda v: len(v.dims) == 2 and v.dims[1] == 4)
    if not g.module:
        return
    g.made.append(f"self.register_buffer('{short}', torch.zeros(4))")
    read = Var(name, (4,))
    if g.chance(0.5):
        g.vars.append(read)
    text = g.one(
        "{b}.add_({a}.detach().sum(0))",
        "{b} += 1",
        "{b}.copy_({a}.detach().abs().sum(0))",
        "{b}.mul_(0.9).add_({a}.detach().sum(0), alpha=0.1)",
        "{b} = {b} * 0.5 + {a}.detach().sum(0)",
        "{b}.zero_()",
        "{b}[0] = 1.0",
    )
    g.line(text.format(b=name, a=a.name))
    if g.chance(0.5):
        g.let(f"{a.name} * {name}", a.dims)


def counter(g: Writer) -> None:
    if not g.module:
        return
    short = f"count{len(g.made)}"
    g.made.append(f"self.register_buffer('{short}', torch.zeros((), dtype=torch.long))")
    g.line(g.one(f"self.{short} += 1", f"self.{short}.add_(1)", f"self.{short} = self.{short} + 1"))
    if g.chance(0.6):
        a = g.float()
        g.let(g.one("{a} * {c}", "{a} / {c}").format(a=a.name, c=f"self.{short}"), a.dims)


def clamped_weight(g: Writer) -> None:
    w = g.pick(lambda v: v.kind == "float" and v.name.startswith("self.p"))
    with g.inside("with torch.no_grad():"):
        g.line(
            g.one("{w}.clamp_(-0.5, 0.5)", "{w}.mul_(0.9)", "{w}.copy_({w} / 2)").format(w=w.name)
        )


STATE: dict[Production, int] = {buffer: 2, counter: 1, clamped_weight: 1}
