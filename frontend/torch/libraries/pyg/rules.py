"""What the leaves mean: their rules, in the importer's table as soon as this is imported."""

import math

import sympy

from ...importer.errors import NoRule
from ...importer.rules.registry import Call, rule, size_expr
from ...importer.values.context import Context
from ...importer.values.held import Held
from ...importer.values.indexed_columns import pick
from ...importer.values.known import known_numbers
from ...importer.values.nodes import Filter, Loops, Node, Set, Union
from ...importer.values.products import einsum
from ...importer.values.sizes import expression
from ...importer.values.tensors import Arr, Merge, elem_of


@rule("gnnc.segment_reduce", counts="dim_size")
def _segment_reduce(c: Call) -> Arr:
    src, index, reduce = c.tensor("src"), c.tensor("index"), c.arg("reduce")
    dim, size = c.arg("dim"), c.arg("dim_size")
    kind = {"add": "sum", "amax": "max", "amin": "min"}.get(reduce, reduce)
    if kind not in ("sum", "mean", "mul", "max", "min"):
        raise NoRule(f"the reduction {reduce!r} (which of several rows wins is undefined)")
    ties = kind in ("max", "min")
    return c.ctx.segment(src, index, dim, size_expr(size), kind, zero_ties=ties)


@rule("gnnc.finite_extremum", counts="num_groups")
def _finite_extremum(c: Call) -> Arr:
    src, index, size = c.tensor("src"), c.tensor("index"), size_expr(c.arg("num_groups"))
    out = c.ctx.segment(src, index, 0, size, c.arg("reduce"))
    infinite = c.ctx.compare("eq", c.ctx.unary("abs", out), math.inf)
    return c.ctx.where(infinite, 0.0, out, elem=out.elem)


@rule("gnnc.segment_softmax", counts="num_groups")
@rule("gnnc.softmax_by_index")
def _segment_softmax(c: Call) -> Arr:
    src, index, size = c.tensor("src"), c.tensor("index"), c.arg("num_groups", None)
    dim = src.wrap(c.arg("dim"))
    over, i = c.ctx.group(index, src, dim)
    codomain = _led_to(c, i) if size is None else c.ctx.sizes.set_of(size_expr(size))
    dims = [*src.dims[:dim], over, *src.dims[dim + 1 :]]
    return Arr(dims, c.ctx.values.softmax(src.v, over, i, codomain))


def _led_to(c: Call, index: Node) -> Set:
    """The set that an index into it was used for before."""
    while index.op == "parent":
        index = index.args[0]
    for v in c.ctx.values:
        if v.op in ("at", "softmax") and v.args[1] is index:
            return v.attrs["codomain"].find()
        if v.op == "reduce" and len(v.args) == 2 and v.args[1] is index and v.set is not None:
            return v.set.find()
    raise NoRule("a softmax over groups whose number is not given (pass num_nodes)")


@rule("gnnc.edge_subgraph")
def _edge_subgraph(c: Call) -> Arr:
    edges, mask = c.tensor("edge_index"), c.tensor("mask")
    return c.ctx.keep(edges, mask, expression(c.out.shape[1]))


@rule("gnnc.remove_self_loops")
def _remove_self_loops(c: Call) -> tuple[Arr, Arr | None]:
    edges, attr = c.tensor("edge_index"), c.optional("edge_attr")
    size = expression(c.example[0].shape[1])
    mask = c.ctx.compare("ne", *_ends(c, edges))
    kept = c.ctx.keep(edges, mask, size)
    return kept, None if attr is None else c.ctx.keep(attr, mask, size)


def _ends(c: Call, edges: Arr) -> tuple[Arr, Arr]:
    return c.ctx.select(edges, 0, 0), c.ctx.select(edges, 0, 1)


@rule("gnnc.coalesced")
def _coalesced(c: Call) -> Arr:
    raise NoRule("edges in order and without duplicates (of arguments alone they come first)")


@rule("gnnc.gcn_norm")
def _gcn_norm(c: Call) -> tuple[Arr, Arr]:
    edges, weight, size = c.tensor("edge_index"), c.optional("weight"), c.arg("num_nodes")
    improved, loops, flow = c.arg("improved"), c.arg("loops"), c.arg("flow")
    c.seen_in_result("dtype")  # of the weights
    values = c.ctx.values
    elem = elem_of(c.example[1].dtype)
    nodes = c.ctx.sizes.set_of(size_expr(size))
    fill = values.const(2.0 if improved and weight is not None else 1.0, elem)
    if weight is None:
        weight = Arr([edges.rows], values.const(1.0, elem))
    elif weight.axis is None:  # a parameter with a number for each edge
        node, rows = c.ctx.rows_of(weight)
        weight = Arr([rows], node)
    if loops:
        total = expression(c.example[0].shape[1])
        edges, weight = _remaining_loops(c, edges, weight, nodes, fill, total)
    over = c.ctx.sizes.unify(edges.rows, weight.rows)
    src, dst = (e.v for e in _ends(c, edges))
    into = dst if flow == "source_to_target" else src
    degree = values.reduce("sum", weight.v, over, into, nodes)
    scale = values.pointwise("rsqrt", [degree], elem, zero=0.0)
    at_src, at_dst = (values.at(scale, i, over, nodes) for i in (src, dst))
    norm = values.pointwise("mul", [at_src, weight.v], elem)
    return edges, Arr([over], values.pointwise("mul", [norm, at_dst], elem))


def _remaining_loops(
    c: Call, edges: Arr, weight: Arr, nodes: Set, fill: Node, total: sympy.Expr
) -> tuple[Arr, Arr]:
    """The edges without loops, then one loop a node with its old weight, or `fill`."""
    values, sizes = c.ctx.values, c.ctx.sizes
    src, dst = (e.v for e in _ends(c, edges))
    home = sizes.unify(edges.rows, weight.rows)
    mask = c.ctx.compare("ne", *_ends(c, edges))
    kept = sizes.born(Filter(home, mask.v), sympy.Symbol(f"_kept{mask.v.number}"))
    loops = sizes.born(Loops(nodes, home, src, dst), nodes.expr)
    union = sizes.born(Union((kept, loops)), total)
    same = values.cast(values.make("loop_node", [], loops, (), "i64"), edges.elem)
    ends = values.broadcast(values.reshape(same, (1,)), (2,))
    edge_v = values.stack(union, [values.parent(edges.v, kept), ends])
    if weight.v.op == "const" and weight.v.attrs == fill.attrs:
        old = fill
    else:
        old = values.make("old", [weight.v, fill], loops, (), weight.elem, of=home)
    weight_v = values.stack(union, [values.parent(weight.v, kept), old])
    return Arr([2, union], edge_v), Arr([union], weight_v)


_PLACES = 64
"""So many places of a group are compared with that of a row (docs/decisions.md has times)."""


@rule("gnnc.count_of")
def _count_of(c: Call) -> Arr:
    """The largest of no rows is 0."""
    return c.ctx.total("max", c.ctx.binary("add", c.tensor("index"), 1))


@rule("gnnc.longest_group", counts="batch_size")
def _longest_group(c: Call) -> Arr:
    """The largest number of rows of a group."""
    batch, values = c.tensor("batch"), c.ctx.values
    over, index = c.ctx.group(batch, batch, 0)
    rows = c.ctx.sizes.set_of(size_expr(c.arg("batch_size")))
    count = values.reduce("sum", values.const(1, "i64"), over, index, rows)
    return c.ctx.total("max", Arr([rows], count))


@rule("gnnc.dense_batch", counts="batch_size")
def _dense_batch(c: Call) -> tuple[Arr, Arr]:
    """Each place of a group is a sum over its rows, of which one is at that place."""
    x, batch, fill, ctx = c.tensor("x"), c.tensor("batch"), c.arg("fill"), c.ctx
    places, groups = c.arg("max_nodes"), size_expr(c.arg("batch_size"))
    if not isinstance(places, int):
        raise NoRule(
            "to_dense_batch without max_num_nodes: its rows are counted by two dimensions, the "
            "group and the place, of which one has to be constant"
        )
    if x.axis != 0 or not 0 < places <= _PLACES:
        raise NoRule(f"to_dense_batch with {places} places, of {x.rank} dimensions")
    over, index = ctx.group(batch, x, 0)
    ctx.assertions.append(Held(_in_order(ctx, batch), _UNORDERED, ValueError))
    rows, values = ctx.sizes.set_of(groups), ctx.values
    number = Arr([over], values.make("iota", [], over, (), "i64"))
    begin = values.at(values.reduce("min", number.v, over, index, rows), index, over, rows)
    place = ctx.cast(ctx.binary("sub", number, Arr([over], begin)), x.elem)
    at = Arr([places], values.count_up(places, x.elem))
    hit = _with_ones(ctx, ctx.compare("eq", ctx.unsqueeze(place, 1), at), x.rank - 1)
    spread = ctx.where(hit, ctx.unsqueeze(x, 1), 0.0, elem=x.elem)
    count = values.reduce("sum", values.const(1, "i64"), over, index, rows)
    filled = ctx.compare("lt", at, ctx.unsqueeze(Arr([rows], count), 1))
    y = ctx.segment(spread, batch, 0, groups, "sum")
    if fill != 0:
        y = ctx.where(_with_ones(ctx, filled, x.rank - 1), y, fill, elem=x.elem)
    return _as_columns(ctx, y, groups), _as_columns(ctx, filled, groups)


_UNORDERED = "to_dense_batch of rows that are not in the order of their groups"


def _in_order(ctx: Context, x: Arr) -> Arr:
    """Whether one number a row never decreases."""
    before = ctx.rows_between(x.rows, sympy.Integer(0), sympy.Integer(-1))
    behind = ctx.rows_between(x.rows, sympy.Integer(1), x.rows.expr)
    lo, hi = (Arr([rows], ctx.values.parent(x.v, rows)) for rows in (before, behind))
    falls = ctx.cast(ctx.compare("gt", lo, hi), "i64")
    return ctx.compare("eq", ctx.total("max", falls), 0)


def _with_ones(ctx: Context, x: Arr, count: int) -> Arr:
    for _ in range(count):
        x = ctx.unsqueeze(x, x.rank)
    return x


def _as_columns(ctx: Context, x: Arr, size: sympy.Expr) -> Arr:
    """Rows of a set of constant size as the columns of one row."""
    if not size.is_Integer:
        return x
    return Arr([int(size), *x.dims[1:]], ctx.values.as_unit(x.v, x.rows, int(size)))


@rule("gnnc.relational_sum")
def _relational_sum(c: Call) -> Arr:
    x, edges, kind = c.optional("x"), c.tensor("edge_index"), c.tensor("edge_type")
    weight, size, reduce = c.tensor("weight"), c.arg("num_dst"), c.arg("reduce")
    ctx, values = c.ctx, c.ctx.values
    edges, kind = _of_known_type(c, edges, kind, weight.dims[0])
    src, dst = _ends(c, edges)
    if x is None or x.rank == 1:
        h = pick(ctx, weight, (0, kind), (1, src if x is None else ctx.gather(x, 0, src)))
        if x is not None:
            ctx.require_below(x, weight.dims[1])
    elif weight.rank == 4:
        h, w = ctx.gather(x, 0, src), ctx.gather(weight, 0, kind)
        blocks, width = weight.dims[1], weight.dims[2]
        h = Arr([h.dims[0], blocks, width], values.reshape(h.v, (blocks, width)))
        h = einsum(ctx, "ebk,ebko->ebo", h, w)
        columns = blocks * weight.dims[3]
        h = Arr([h.dims[0], columns], values.reshape(h.v, (columns,)))
    else:
        h = einsum(ctx, "ek,eko->eo", ctx.gather(x, 0, src), ctx.gather(weight, 0, kind))
    if reduce == "sum":
        return ctx.segment(h, dst, 0, size_expr(size), "sum")
    over, into = ctx.group(dst, h, 0)
    nodes = ctx.sizes.set_of(size_expr(size))
    relations = ctx.sizes.set_of(sympy.Integer(weight.dims[0]))
    args, over = values.join([h.v, into, kind.v], over)
    v = values.make(
        "mean_per_pair", args, nodes, h.v.shape, h.elem, over=over, codomains=(nodes, relations)
    )
    return Arr([nodes, h.dims[1]], v)


@rule("gnnc.pair_count")
def _pair_count(c: Call) -> Arr:
    index, types, elem = c.tensor("index"), c.tensor("types"), c.tensor("like").elem
    sizes = [c.ctx.sizes.set_of(size_expr(c.arg(name))) for name in ("groups", "num_types")]
    args, over = c.ctx.values.join([index.v, types.v])
    v = c.ctx.values.make("count_per_pair", args, over, (), elem, over=over, codomains=tuple(sizes))
    return Arr([over], v)


def _of_known_type(c: Call, edges: Arr, kind: Arr, relations: int) -> tuple[Arr, Arr]:
    """The edges whose type is one of 0 .. relations - 1."""
    ctx = c.ctx
    low, high = ctx.compare("ge", kind, 0), ctx.compare("lt", kind, relations)
    mask = ctx.raw("logical_and", [low, high], "i1")
    size = sympy.Symbol(f"_known{mask.v.number}")
    return ctx.keep(edges, mask, size), ctx.keep(kind, mask, size)


@rule("gnnc.typed_linear")
def _typed_linear(c: Call) -> Arr:
    x, kind = c.tensor("x"), c.tensor("types")
    weight, bias = c.tensor("weight"), c.optional("bias")
    home = c.ctx.sizes.unify(x.rows, kind.rows)
    w = _take(c, weight, kind.v)
    letter = "h" if isinstance(x.dims[0], Merge) else ""
    y = c.ctx.values.contract(f"{letter}k,{letter}ko->{letter}o", x.v, w)
    if bias is not None:
        y = c.ctx.values.pointwise("add", [y, _take(c, bias, kind.v)], y.elem)
    dim = Merge(x.dims[0].k, home, x.dims[0].within) if letter else home
    return Arr([dim, weight.dims[2]], y)


def _take(c: Call, weight: Arr, kind: Node) -> Node:
    """`weight[kind]` for integer rows: constants on each part of a union pick constant slices."""
    values = c.ctx.values
    if kind.op == "stack":
        return values.stack(kind.home, [_take(c, weight, k) for k in kind.args])
    numbers = known_numbers(kind)
    if numbers is not None:
        rows = [values.slice(weight.v, 0, k, k + 1) for k in numbers]
        table = values.concat(rows, 0)
        return table if kind.shape else values.reshape(table, table.shape[1:])
    if kind.shape == () and kind.set is not None:
        node, rows = c.ctx.rows_of(weight)
        return values.at(node, kind, kind.home, rows)
    raise NoRule("types that are neither one number a row nor constant for each part")
