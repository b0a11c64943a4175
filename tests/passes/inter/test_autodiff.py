"""autodiff: the derivative of every op against central differences, on whole and least domains."""

import re

import numpy as np
import pytest
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.inter import Inter
from gnnc.dialects.inter.base import ValueOp
from gnnc.dialects.meaning import SetVal, run
from gnnc.dialects.pointwise import POINTWISE
from gnnc.dialects.signature import result_attributes
from gnnc.passes.inter.autodiff import autodiff
from gnnc.passes.inter.differentiation import derivatives
from gnnc.passes.inter.infer_domains import infer_domains

from ..gradients import GRAPHS, agree, parse, slopes

SETS = """%N : !inter.set<N, tag: T>, %T : !inter.set<T>, %R : !inter.set<R>, %M : !inter.set<M>,
    %S : !inter.set<S, parent: N mono>,
    %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>"""
ROWS = {
    "x": "N, 3xf64",
    "y": "N, 3xf64",
    "w": "g, f64",
    "t": "T, 3xf64",
    "W": "R, 3x2xf64",
    "b": "unit, 3xf64",
    "c": "unit, f64",
    "V": "unit, 3x2xf64",
}


def program(body: str, low: float = 0.0) -> tuple[str, float]:
    """A function that reads some of ROWS, all with gradients, and returns `%o`; the values `%xs`,
    `%xr`, `%yd` and `%we` are there. Arguments are above `low`, if that is positive."""
    types = re.findall(r"%o = .*: (!inter.rows<.*>)$", body, re.M)
    args = ", ".join(f"%{k} : !inter.rows<{t}> {{inter.needs_grad}}" for k, t in ROWS.items())
    text = f"""
func.func @f({SETS}, {args}, %key : !inter.rows<unit, i64>, %to : !inter.rows<N, i64>,
    %mask : !inter.rows<g, i1>) -> {types[-1]} {{
  %xs = inter.at %g[src], %x : !inter.rows<g, 3xf64>
  %xr = inter.at %g[src], %y : !inter.rows<g, 3xf64>
  %yd = inter.at %g[dst], %y : !inter.rows<g, 3xf64>
  %we = inter.reshape %w : !inter.rows<g, 1xf64>
{body}
  func.return %o : {types[-1]}
}}
"""
    return text, low


def edge(lines: str, low: float = 0.0, row: str = "3xf64") -> tuple[str, float]:
    """A program whose `%z` is a value per edge."""
    return program(
        f"{lines}\n  %o = inter.reduce sum %z over %g along dst : !inter.rows<N, {row}>", low
    )


UNARY = {
    "leaky_relu": "{slope = 0.2}",
    "elu": "{alpha = 1.5}",
    "rsqrt": "{zero = 0.5}",
}
POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt", "pow", "div", "log1p"}
KINDS = ("sum", "mean", "max", "min", "mul")

CASES: dict[str, tuple[str, float]] = {}
for name, spec in POINTWISE.items():
    low = 1.2 if name == "acosh" else 0.3 if name in POSITIVE else 0.0
    if not any(spec.slopes) or name == "where":
        continue
    out = ": !inter.rows<g, 3xf64>"
    if spec.arity == 1:
        CASES[name] = edge(f"  %z = inter.{name} %xs {UNARY.get(name, '')} {out}", low)
    else:
        third = ", %we" if spec.arity == 3 else ""
        CASES[name] = edge(f"  %z = inter.{name} %xs, %yd{third} {out}", low)
        CASES[f"{name}_of_one_end"] = edge(f"  %z = inter.{name} %xs, %xr{third} {out}", low)
        CASES[f"{name}_with_a_row"] = edge(f"  %z = inter.{name} %b, %xs{third} {out}", low)
        CASES[f"{name}_broadcast"] = edge(f"  %z = inter.{name} %xs, %we{third} {out}", low)
CASES |= {
    name: edge(f"""
  %h = inter.tanh %xs : !inter.rows<g, 3xf64>
  %z = inter.{name} %h : !inter.rows<g, 3xf64>""")
    for name in ("erfinv", "asin", "acos", "atanh")
}
CASES |= {
    "relu_twice_used": edge("""
  %r = inter.relu %xs : !inter.rows<g, 3xf64>
  %z = inter.mul %r, %r : !inter.rows<g, 3xf64>"""),
    "leaky_relu_negative_slope": edge(
        "  %z = inter.leaky_relu %xs {slope = -0.3} : !inter.rows<g, 3xf64>"
    ),
    "elu_negative_alpha": edge("  %z = inter.elu %xs {alpha = -0.5} : !inter.rows<g, 3xf64>"),
    "where": edge("""
  %m = inter.gt %xs, %yd : !inter.rows<g, 3xi1>
  %z = inter.where %m, %xr, %we : !inter.rows<g, 3xf64>"""),
    "stop": edge("""
  %p = inter.stop %mask : !inter.rows<g, i1>
  %z = inter.where %p, %xs, %yd : !inter.rows<g, 3xf64>"""),
    "cast": edge("""
  %p = inter.cast %xs : !inter.rows<g, 3xf32>
  %z = inter.cast %p : !inter.rows<g, 3xf64>"""),
    "dropout": edge(
        "  %z = inter.dropout %xs, %key over %g {p = 0.4, site = 3} : !inter.rows<g, 3xf64>"
    ),
    "dropout_as_other_rows": edge("""
  %i = inter.index %g[src] : !inter.rows<g, i64>
  %z = inter.dropout %xs, %key over %g as %i {p = 0.4, site = 3} : !inter.rows<g, 3xf64>"""),
    "dropout_of_a_row": edge("""
  %p = inter.dropout %b, %key {p = 0.4, site = 3} : !inter.rows<unit, 3xf64>
  %z = inter.mul %xs, %p : !inter.rows<g, 3xf64>"""),
}
for k in (0.0, 1.0, 2.0, 3.0, -1.0):
    CASES[f"pow_to_{k}"] = edge(f"""
  %k = inter.const {k} : !inter.rows<unit, f64>
  %z = inter.pow %xs, %k : !inter.rows<g, 3xf64>""")

# reads across sets
CASES |= {
    "at_keyed_domain": edge("""
  %tn = inter.at %N[tag], %t : !inter.rows<N, 3xf64>
  %p = inter.at %g[src], %tn : !inter.rows<g, 3xf64>
  %q = inter.at %g[src.tag], %t : !inter.rows<g, 3xf64>
  %z = inter.mul %p, %q : !inter.rows<g, 3xf64>"""),
    "at_unit": edge("  %z = inter.at %g[src], %b : !inter.rows<g, 3xf64>"),
    "at_mono": program("""
  %s = inter.at %S[parent], %x : !inter.rows<S, 3xf64>
  %o = inter.mul %s, %s : !inter.rows<S, 3xf64>"""),
    "at_path_of_a_filter": edge("""
  %f = inter.filter %g {no_loops}
    : !inter.set<f, src: N, dst: N, rel: R, parent: g mono, pairs (rel, src) (dst, rel)>
  %p = inter.at %f[parent.src], %x : !inter.rows<f, 3xf64>
  %q = inter.at %f[parent], %w : !inter.rows<f, f64>
  %r = inter.mul %p, %q : !inter.rows<f, 3xf64>
  %s = inter.reduce sum %r over %f along (rel, src) : !inter.rows<f[rel, src], 3xf64>
  %a = inter.reduce sum %s over %f along dst : !inter.rows<N, 3xf64>
  %z = inter.at %g[src], %a : !inter.rows<g, 3xf64>"""),
    "filter_by_mask": edge("""
  %f = inter.filter %g, %mask
    : !inter.set<f, src: N, dst: N, rel: R, parent: g mono, pairs (rel, src) (dst, rel)>
  %q = inter.at %f[parent], %w : !inter.rows<f, f64>
  %a = inter.reduce sum %q over %f along dst : !inter.rows<N, f64>
  %p = inter.at %g[src], %a : !inter.rows<g, f64>
  %z = inter.mul %xs, %p : !inter.rows<g, 3xf64>"""),
    "attach": program("""
  %A = inter.attach %N (to = %to) : !inter.set<A, tag: T, to: M, parent: N mono onto>
  %a = inter.at %A[parent], %x : !inter.rows<A, 3xf64>
  %p = inter.reduce max %a over %A along to : !inter.rows<M, 3xf64>
  %o = inter.mul %p, %b : !inter.rows<M, 3xf64>"""),
    "as_rows": program("""
  %Q = inter.range 3 : !inter.set<Q>
  %o = inter.as_rows %Q, %V : !inter.rows<Q, 2xf64>"""),
    "as_rows_of_a_total": program("""
  %Q = inter.range 3 : !inter.set<Q>
  %q = inter.as_rows %Q, %V : !inter.rows<Q, 2xf64>
  %o = inter.reduce sum %q over %Q along () : !inter.rows<unit, 2xf64>"""),
    "as_unit": program("""
  %o = inter.as_unit %R, %W : !inter.rows<unit, 3x3x2xf64>"""),
}
LOOPS = """
  %l = inter.loops %g {remaining}
    : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>
"""
CASES |= {
    "else": program(LOOPS + "  %o = inter.at %l[old], %w else %c : !inter.rows<l, f64>"),
    "else_of_unit": program(
        LOOPS
        + """
  %n = inter.neg %b : !inter.rows<unit, 3xf64>
  %o = inter.at %l[old], %b else %n : !inter.rows<l, 3xf64>"""
    ),
    "else_keyed": program(
        LOOPS
        + """
  %e = inter.at %l[src], %y : !inter.rows<l, 3xf64>
  %p = inter.at %l[old], %xs else %e : !inter.rows<l, 3xf64>
  %o = inter.reduce sum %p over %l along dst : !inter.rows<N, 3xf64>"""
    ),
    "else_of_pairs": program(
        LOOPS
        + """
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 3x2xf64>
  %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 2xf64>
  %e = inter.const 1.0 : !inter.rows<unit, 2xf64>
  %o = inter.at %l[old], %h else %e : !inter.rows<l, 2xf64>"""
    ),
    "reduce_along_partial": program(
        LOOPS
        + """
  %e = inter.at %l[src], %x : !inter.rows<l, 3xf64>
  %o = inter.reduce sum %e over %l along old : !inter.rows<g, 3xf64>"""
    ),
    "last_along_partial": program(
        LOOPS
        + """
  %e = inter.at %l[src], %x : !inter.rows<l, 3xf64>
  %o = inter.reduce last %e over %l along old else %xs : !inter.rows<g, 3xf64>"""
    ),
    "stack_and_part": program(
        LOOPS
        + """
  %u = inter.union %g, %l : !inter.set<u, src: N onto, dst: N onto, parts g l>
  %wl = inter.at %l[old], %w else %c : !inter.rows<l, f64>
  %s = inter.stack %u, %w, %wl : !inter.rows<u, f64>
  %xu = inter.at %u[src], %x : !inter.rows<u, 3xf64>
  %m = inter.mul %xu, %s : !inter.rows<u, 3xf64>
  %p = inter.part 1 of %u, %m : !inter.rows<l, 3xf64>
  %o = inter.reduce sum %p over %l along dst : !inter.rows<N, 3xf64>"""
    ),
    "stack_of_coarse": program(
        LOOPS
        + """
  %u = inter.union %g, %l : !inter.set<u, src: N onto, dst: N onto, parts g l>
  %xl = inter.at %l[src], %y : !inter.rows<l, 3xf64>
  %s = inter.stack %u, %xs, %xl : !inter.rows<u, 3xf64>
  %o = inter.reduce sum %s over %u along () : !inter.rows<unit, 3xf64>"""
    ),
}

# the row's own dimensions
CASES |= {
    "contract_typed": edge(
        """
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 3x2xf64>
  %z = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 2xf64>""",
        row="2xf64",
    ),
    "contract_dot": edge('  %z = inter.contract "f,f->" %xs, %yd : !inter.rows<g, f64>', row="f64"),
    "contract_outer": edge(
        '  %z = inter.contract "a,b->ba" %xs, %yd : !inter.rows<g, 3x3xf64>', row="3x3xf64"
    ),
    "contract_scalar": edge('  %z = inter.contract ",f->f" %w, %xs : !inter.rows<g, 3xf64>'),
    "transpose": program("""
  %p = inter.reshape %W : !inter.rows<R, 3x1x2xf64>
  %o = inter.transpose %p [2, 0, 1] : !inter.rows<R, 2x3x1xf64>"""),
    "broadcast": program("""
  %p = inter.reshape %x : !inter.rows<N, 3x1xf64>
  %o = inter.broadcast %p : !inter.rows<N, 2x3x4xf64>"""),
    "slice": program("  %o = inter.slice %W {dim = 0, lo = 1, hi = 2} : !inter.rows<R, 1x2xf64>"),
    "slice_step": program("""
  %p = inter.reshape %W : !inter.rows<R, 6xf64>
  %o = inter.slice %p {dim = 0, lo = 1, hi = 6, step = 3} : !inter.rows<R, 2xf64>"""),
    "slice_step_to_the_end": program("""
  %p = inter.reshape %W : !inter.rows<R, 6xf64>
  %o = inter.slice %p {dim = 0, lo = 0, hi = 6, step = 2} : !inter.rows<R, 3xf64>"""),
    "concat": edge(
        """
  %n = inter.neg %yd : !inter.rows<g, 3xf64>
  %z = inter.concat %xs, %n, %xs {dim = 0} : !inter.rows<g, 9xf64>""",
        row="9xf64",
    ),
    "row_sum": edge("  %z = inter.row_reduce sum %xs [0] : !inter.rows<g, f64>", row="f64"),
    "row_max": edge("  %z = inter.row_reduce max %xs [0] : !inter.rows<g, f64>", row="f64"),
    "row_min": program("  %o = inter.row_reduce min %W [1] : !inter.rows<R, 3xf64>"),
}

# the rows of a set
MESSAGE = """
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 3x2xf64>
  %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 2xf64>
"""
for kind in KINDS:
    CASES[f"{kind}_along_dst"] = program(
        f"{MESSAGE}  %o = inter.reduce {kind} %h over %g along dst : !inter.rows<N, 2xf64>"
    )
    CASES[f"{kind}_along_pairs"] = program(
        f"{MESSAGE}  %m = inter.reduce {kind} %h over %g along (dst, rel) "
        ": !inter.rows<g[dst, rel], 2xf64>\n"
        "  %o = inter.reduce sum %m over %g[dst, rel] along dst : !inter.rows<N, 2xf64>"
    )
    CASES[f"{kind}_along_nothing"] = program(
        f"  %o = inter.reduce {kind} %xs over %g along () : !inter.rows<unit, 3xf64>"
    )
CASES |= {
    "sum_along_path": program(
        "  %o = inter.reduce sum %xs over %g along dst.tag : !inter.rows<T, 3xf64>"
    ),
    "last": program(
        "  %o = inter.reduce last %xs over %g along dst else %x : !inter.rows<N, 3xf64>"
    ),
    "count_is_constant": edge("""
  %n = inter.count over %g along dst : !inter.rows<N, f64>
  %p = inter.at %g[dst], %n : !inter.rows<g, f64>
  %z = inter.mul %xs, %p : !inter.rows<g, 3xf64>"""),
    "softmax": edge("""
  %a = inter.add %xs, %yd : !inter.rows<g, 3xf64>
  %p = inter.softmax %a over %g along dst : !inter.rows<g, 3xf64>
  %z = inter.mul %p, %xr : !inter.rows<g, 3xf64>"""),
    "softmax_of_pairs": edge(
        MESSAGE
        + """
  %p = inter.softmax %h over %g along rel : !inter.rows<g, 2xf64>
  %z = inter.mul %p, %w : !inter.rows<g, 2xf64>""",
        row="2xf64",
    ),
    "softmax_along_pairs": edge("""
  %p = inter.softmax %w over %g along (dst, rel) : !inter.rows<g, f64>
  %z = inter.mul %p, %xs : !inter.rows<g, 3xf64>"""),
    "softmax_of_everything": edge(
        MESSAGE
        + """
  %p = inter.softmax %h over %g along () : !inter.rows<g, 2xf64>
  %z = inter.mul %p, %w : !inter.rows<g, 2xf64>""",
        row="2xf64",
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("before", [(), (infer_domains,)], ids=["whole", "least"])
@pytest.mark.parametrize("case", CASES)
def test_derivative(case, before, graph):
    text, low = CASES[case]
    found = slopes(text, graph, 3, before, low=low)
    assert len(found) == len(ROWS)
    assert agree(found), found


def test_every_op_has_a_rule_or_carries_no_gradient():
    none = {"const", "table", "index", "iota", "size", "stop", "count"}
    none |= {"all_reduce"}  # which comes later: autodiff refuses it
    for op in Inter.operations:
        if issubclass(op, ValueOp):
            name = op.name.removeprefix("inter.")
            assert (op in derivatives.RULES) != (name in none), name


# ---------------------------------------------------------------- where a slope is a convention


def gradient(body: str, x: list[float], args: str = "", more: tuple = (), d: float = 1.0):
    """The gradient of `%o`, a value per row of N, with respect to `%x`, one number per row."""
    module, func = parse(f"""
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f64> {{inter.needs_grad}}{args})
    -> !inter.rows<N, f64> {{
{body}
  func.return %o : !inter.rows<N, f64>
}}""")
    autodiff(func)
    cotangent = np.full(len(x), d)
    return run(module, "f", SetVal(len(x)), np.array(x), *more, cotangent)[1].tolist()


@pytest.mark.parametrize(
    "op,want",
    [
        ("relu %x", [0.0, 0.0, 1.0]),
        ("leaky_relu %x {slope = 0.25}", [0.25, 0.25, 1.0]),
        ("elu %x {alpha = 2.0}", [2 * np.exp(-1), 2.0, 1.0]),
        ("abs %x", [-1.0, 0.0, 1.0]),
        ("maximum %x, %y", [0.0, 0.5, 1.0]),
        ("maximum %y, %x", [0.0, 0.5, 1.0]),
        ("minimum %x, %y", [1.0, 0.5, 0.0]),
        ("pow %x, %y", [0.0, 0.0, 0.0]),
    ],
)
def test_kinks_are_as_in_torch(op, want):
    zero = "  %y = inter.const 0.0 : !inter.rows<unit, f64>\n"
    found = gradient(f"{zero}  %o = inter.{op} : !inter.rows<N, f64>", [-1.0, 0.0, 2.0])
    assert found == pytest.approx(want, abs=0)


def test_rsqrt_has_slope_0_where_its_value_is_given():
    for zero in ("", "{zero = 0.0}", "{zero = 3.0}"):
        out = gradient(f"  %o = inter.rsqrt %x {zero} : !inter.rows<N, f64>", [4.0, 1.0])
        assert out == [-0.0625, -0.5]
        if zero:
            body = f"  %o = inter.rsqrt %x {zero} : !inter.rows<N, f64>"
            assert gradient(body, [0.0, 1.0]) == [0.0, -0.5]


GROUPS = ", %g : !inter.set<g, of: N, to: N>"


@pytest.mark.parametrize(
    "kind,x,want",
    [
        # rows 0, 1, 2 go to 0; row 3 goes to 1
        ("max", [2.0, 2.0, 1.0, 5.0], [0.5, 0.5, 0.0, 1.0]),
        ("min", [2.0, 1.0, 1.0, 5.0], [0.0, 0.5, 0.5, 1.0]),
        ("mul", [2.0, 0.0, 3.0, 5.0], [0.0, 6.0, 0.0, 1.0]),
        ("mul", [2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_ties_and_zeros_in_a_group(kind, x, want):
    g = SetVal(4, {"of": np.arange(4), "to": np.array([0, 0, 0, 1])})
    for zero_ties in ("",) if kind == "mul" else ("", "{zero_ties}"):
        body = f"""
  %e = inter.at %g[of], %x : !inter.rows<g[of], f64>
  %o = inter.reduce {kind} %e over %g along to {zero_ties} : !inter.rows<N, f64>"""
        assert gradient(body, x, GROUPS, (g,)) == want


def test_zero_start_of_a_scatter_is_one_more_tie():
    body = """
  %e = inter.at %g[of], %x : !inter.rows<g[of], f64>
  %o = inter.reduce max %e over %g along to {zero_ties} : !inter.rows<N, f64>"""
    g = SetVal(4, {"of": np.arange(4), "to": np.array([0, 0, 0, 1])})
    out = gradient(body, [0.0, 0.0, -1.0, 0.0], GROUPS, (g,), d=6.0)
    assert out == [2.0, 2.0, 0.0, 3.0]


@pytest.mark.parametrize(
    "every,of,to,want",
    [
        # node 2 has no row: its own value stays
        ("", [0, 1, 0, 1], [0, 0, 1, 1], [0.0, 2.0, 1.0]),
        ("{every}", [0, 1, 0, 1], [0, 0, 1, 1], [2.0, 2.0, 1.0]),
        ("{every}", [2, 2, 2, 0], [1, 1, 1, 1], [2.0, 0.0, 4.0]),
    ],
)
def test_last_may_give_every_row_the_cotangent(every, of, to, want):
    body = f"""
  %e = inter.at %g[of], %x : !inter.rows<g[of], f64>
  %o = inter.reduce last %e over %g along to else %x {every} : !inter.rows<N, f64>"""
    g = SetVal(4, {"of": np.array(of), "to": np.array(to)})
    assert gradient(body, [3.0, 4.0, 5.0], GROUPS, (g,)) == want


def test_row_maximum_shares_evenly():
    module, func = parse("""
func.func @f(%x : !inter.rows<unit, 4xf64> {inter.needs_grad}) -> !inter.rows<unit, f64> {
  %o = inter.row_reduce max %x [0] : !inter.rows<unit, f64>
  func.return %o : !inter.rows<unit, f64>
}""")
    autodiff(func)
    _, dx = run(module, "f", np.array([[3.0, 1.0, 3.0, 2.0]]), np.ones(1))
    assert dx.tolist() == [[0.5, 0.0, 0.5, 0.0]]


# ---------------------------------------------------------------- signatures


def test_signature():
    _, func = parse("""
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f64> {inter.needs_grad, inter.name = "X"},
    %m : !inter.rows<unit, f64>, %b : !inter.rows<unit, f64> {inter.needs_grad})
    -> (!inter.rows<N, f64> {inter.name = "out"}, !inter.rows<unit, f64> {inter.update = "m"},
        !inter.rows<N, i1>, !inter.rows<unit, f64>) {
  %o = inter.add %x, %b : !inter.rows<N, f64>
  %u = inter.neg %m : !inter.rows<unit, f64>
  %p = inter.gt %x, %b : !inter.rows<N, i1>
  func.return %o, %u, %p, %b : !inter.rows<N, f64>, !inter.rows<unit, f64>, !inter.rows<N, i1>,
    !inter.rows<unit, f64>
}""")
    autodiff(func)
    assert func.arg_attrs is not None
    names = [str(d.data["inter.name"].data) for d in list(func.arg_attrs)[4:]]
    assert names == ["d_out", "d_b"]
    grads = [d["inter.grad"].data for d in result_attributes(func)[4:]]
    assert grads == ["X", "b"]
    assert list(func.function_type.outputs)[4:] == [a.type for a in list(func.args)[1:4:2]]


@pytest.mark.parametrize(
    "args,message",
    [
        ("%x : !inter.rows<unit, f64>", "no argument has inter.needs_grad"),
        ("%x : !inter.rows<unit, f64>, %i : !inter.rows<unit, i64> {inter.needs_grad}", "floats"),
        (
            "%x : !inter.rows<unit, f64> {inter.needs_grad}, "
            "%d : !inter.rows<unit, f64> {inter.cotangent}",
            "run autodiff once",
        ),
    ],
)
def test_refusals(args, message):
    _, func = parse(f"""
func.func @f({args}) -> !inter.rows<unit, f64> {{
  func.return %x : !inter.rows<unit, f64>
}}""")
    with pytest.raises(PassFailedException, match=message):
        autodiff(func)


def test_last_over_pairs_is_refused():
    _, func = parse("""
func.func @f(%N : !inter.set<N>, %R : !inter.set<R>,
    %g : !inter.set<g, src: N, rel: R, pairs (rel, src)>,
    %x : !inter.rows<R, f64> {inter.needs_grad}) -> !inter.rows<N, f64> {
  %xs = inter.at %g[rel], %x : !inter.rows<g[rel], f64>
  %c = inter.const 0.0 : !inter.rows<unit, f64>
  %o = inter.reduce last %xs over %g[rel, src] along src else %c : !inter.rows<N, f64>
  func.return %o : !inter.rows<N, f64>
}""")
    with pytest.raises(PassFailedException, match="rows have no numbers"):
        autodiff(func)
