"""Programs of a few ops, one for each thing that lowering must get right.

Each is a whole function on sets `N` (nodes), `R` (relations) and `g` (edges).
"""

from __future__ import annotations

from textwrap import indent

SETS = """%N : !inter.set<N>, %R : !inter.set<R>,
    %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>"""


def program(arguments: str, results: str, body: str) -> str:
    """A function @main on the sets; `results` are `(value, type)` separated by semicolons."""
    pairs = [r.split(":", 1) for r in results.split(";")]
    values = ", ".join(v.strip() for v, _ in pairs)
    types = ", ".join(t.strip() for _, t in pairs)
    head = f"func.func @main({SETS},\n    {arguments}) -> ({types}) {{"
    body = indent(body.strip("\n"), "  ")
    return f"{head}\n{body}\n  func.return {values} : {types}\n}}\n"


def rows(dom: str, row: str) -> str:
    """`!inter.rows<N, 3xf64>`"""
    return f"!inter.rows<{dom}, {row}>"


X = "%x : !inter.rows<N, 3xf64> {inter.needs_grad}"
E = "%e : !inter.rows<g, 3xf64> {inter.needs_grad}"


def reduction(kind: str, over: str, along: str, result: str, row: str = "3xf64") -> str:
    """One reduction of edge rows, gathered from nodes or pairs so that `over` can be any domain."""
    keys = over[1:]
    source = {
        "": ("%x", f"%x : {rows('g', row)} {{inter.needs_grad}}", ""),
        "[src]": (
            "%s",
            f"%x : {rows('N', row)} {{inter.needs_grad}}",
            f"%s = inter.at %g[src], %x : {rows('g[src]', row)}",
        ),
        "[rel, src]": (
            "%s",
            f"%x : {rows('g[rel, src]', row)} {{inter.needs_grad}}",
            f"%s = inter.neg %x : {rows('g[rel, src]', row)}",
        ),
    }[keys]
    value, argument, body = source
    op = f"%y = inter.reduce {kind} {value} over %g{keys} along {along} : {rows(result, row)}"
    return program(argument, f"%y : {rows(result, row)}", f"{body}\n{op}")


PROGRAMS: dict[str, str] = {}

for _kind in ("sum", "mean", "max", "min", "mul"):
    PROGRAMS[f"reduce {_kind}"] = reduction(_kind, "g", "dst", "N")
    PROGRAMS[f"reduce {_kind} over pairs"] = reduction(_kind, "g[rel, src]", "src", "N")
    PROGRAMS[f"reduce {_kind} over seen nodes"] = reduction(_kind, "g[src]", "src", "N")
    PROGRAMS[f"reduce {_kind} into pairs"] = reduction(_kind, "g", "(dst, rel)", "g[dst, rel]")
    PROGRAMS[f"reduce {_kind} into one row"] = reduction(_kind, "g", "()", "unit")

PROGRAMS["along in another order"] = reduction("sum", "g", "(rel, dst)", "g[dst, rel]")
PROGRAMS["max with zero ties"] = reduction("max", "g", "dst", "N").replace(
    "along dst", "along dst {zero_ties}"
)

PROGRAMS["last"] = program(
    f"{E}, {X}",
    f"%y : {rows('N', '3xf64')}",
    "%y = inter.reduce last %e over %g along dst else %x : !inter.rows<N, 3xf64>",
)

PROGRAMS["counts"] = program(
    X,
    "%y : !inter.rows<N, f64>; %p : !inter.rows<g[dst, rel], i64>; %t : !inter.rows<unit, i64>",
    """
%a = inter.count over %g along dst : !inter.rows<N, f64>
%s = inter.row_reduce sum %x [0] : !inter.rows<N, f64>
%y = inter.mul %a, %s : !inter.rows<N, f64>
%p = inter.count over %g along (dst, rel) : !inter.rows<g[dst, rel], i64>
%t = inter.count over %g along () : !inter.rows<unit, i64>
""",
)

PROGRAMS["softmax over edges"] = program(
    E,
    f"%y : {rows('g', '3xf64')}",
    "%y = inter.softmax %e over %g along dst : !inter.rows<g, 3xf64>",
)
PROGRAMS["softmax of all rows"] = program(
    X,
    f"%y : {rows('N', '3xf64')}",
    "%y = inter.softmax %x over %N along () : !inter.rows<N, 3xf64>",
)
PROGRAMS["softmax in pairs"] = program(
    E,
    f"%y : {rows('g', '3xf64')}",
    "%y = inter.softmax %e over %g along (dst, rel) : !inter.rows<g, 3xf64>",
)
PROGRAMS["softmax of pairs"] = program(
    "%x : !inter.rows<g[rel, src], 2xf64> {inter.needs_grad}",
    f"%y : {rows('g[rel, src]', '2xf64')}",
    "%y = inter.softmax %x over %g[rel, src] along src : !inter.rows<g[rel, src], 2xf64>",
)

PROGRAMS["else"] = program(
    f"{E}, {X}",
    f"%y : {rows('l', '3xf64')}",
    """
%l = inter.loops %g {remaining}
  : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>
%p = inter.at %l[dst], %x : !inter.rows<l, 3xf64>
%q = inter.exp %p : !inter.rows<l, 3xf64>
%y = inter.at %l[old], %e else %q : !inter.rows<l, 3xf64>
""",
)

PROGRAMS["else of one row"] = program(
    f"{E}, %b : {rows('unit', '3xf64')}",
    f"%y : {rows('l', '3xf64')}",
    """
%l = inter.loops %g {remaining}
  : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>
%c = inter.const 2.0 : !inter.rows<unit, 3xf64>
%p = inter.at %l[old], %b else %c : !inter.rows<l, 3xf64>
%q = inter.exp %b : !inter.rows<unit, 3xf64>
%r = inter.at %l[old], %c else %q : !inter.rows<l, 3xf64>
%y = inter.mul %p, %r : !inter.rows<l, 3xf64>
""",
)

PROGRAMS["else of pairs"] = program(
    f"{X}, %W : {rows('R', '3x2xf64')}",
    f"%y : {rows('l', '2xf64')}",
    """
%l = inter.loops %g {remaining}
  : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>
%xs = inter.at %g[src], %x : !inter.rows<g[src], 3xf64>
%Wr = inter.at %g[rel], %W : !inter.rows<g[rel], 3x2xf64>
%h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g[rel, src], 2xf64>
%c = inter.const 1.0 : !inter.rows<unit, 2xf64>
%y = inter.at %l[old], %h else %c : !inter.rows<l, 2xf64>
""",
)

PROGRAMS["stack and part"] = program(
    f"{E}, {X}",
    f"%y : {rows('N', '3xf64')}; %b : {rows('a', '3xf64')}",
    """
%a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, rel: R, parent: g mono>
%l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
%u = inter.union %a, %l : !inter.set<u, src: N onto, dst: N onto, parts a l>
%ea = inter.at %a[parent], %e : !inter.rows<a, 3xf64>
%el = inter.at %l[dst], %x : !inter.rows<l, 3xf64>
%s = inter.stack %u, %ea, %el : !inter.rows<u, 3xf64>
%t = inter.tanh %s : !inter.rows<u, 3xf64>
%y = inter.reduce sum %t over %u along dst : !inter.rows<N, 3xf64>
%xu = inter.at %u[src], %x : !inter.rows<u, 3xf64>
%m = inter.mul %t, %xu : !inter.rows<u, 3xf64>
%b = inter.part 0 of %u, %m : !inter.rows<a, 3xf64>
""",
)

PROGRAMS["pairs read from edges"] = program(
    "%x : !inter.rows<N, 3xf64> {inter.needs_grad}, "
    "%W : !inter.rows<R, 3x2xf64> {inter.needs_grad}",
    f"%y : {rows('N', '2xf64')}",
    """
%xs = inter.at %g[src], %x : !inter.rows<g, 3xf64>
%Wr = inter.at %g[rel], %W : !inter.rows<g, 3x2xf64>
%h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 2xf64>
%t = inter.sigmoid %h : !inter.rows<g, 2xf64>
%y = inter.reduce mean %t over %g along dst : !inter.rows<N, 2xf64>
""",
)

PROGRAMS["as rows and back"] = program(
    "%w : !inter.rows<unit, 4x3xf64> {inter.needs_grad}",
    "%y : !inter.rows<g, 3xf64>; %z : !inter.rows<unit, 4x3xf64>",
    """
%v = inter.as_rows %R, %w : !inter.rows<R, 3xf64>
%t = inter.exp %v : !inter.rows<R, 3xf64>
%y = inter.at %g[rel], %t : !inter.rows<g, 3xf64>
%z = inter.as_unit %R, %t {n = 4} : !inter.rows<unit, 4x3xf64>
""",
)

PROGRAMS["positions"] = program(
    X,
    "%y : !inter.rows<N, f64>; %o : !inter.rows<g, i64>",
    """
%i = inter.iota %N : !inter.rows<N, i64>
%f = inter.cast %i : !inter.rows<N, f64>
%n = inter.size %g : !inter.rows<unit, i64>
%m = inter.cast %n : !inter.rows<unit, f64>
%s = inter.row_reduce sum %x [0] : !inter.rows<N, f64>
%a = inter.mul %f, %s : !inter.rows<N, f64>
%y = inter.add %a, %m : !inter.rows<N, f64>
%d = inter.index %g[dst] : !inter.rows<g, i64>
%r = inter.index %g[rel] : !inter.rows<g, i64>
%k = inter.mul %d, %r : !inter.rows<g, i64>
%three = inter.const 3 : !inter.rows<unit, i64>
%o = inter.mod %k, %three : !inter.rows<g, i64>
""",
)

PROGRAMS["dropout on nodes"] = program(
    f"{X}, %key : !inter.rows<unit, i64>",
    f"%y : {rows('N', '3xf64')}",
    "%y = inter.dropout %x, %key over %N {p = 0.4, site = 7} : !inter.rows<N, 3xf64>",
)

PROGRAMS["dropout as other rows"] = program(
    f"{E}, %i : !inter.rows<N, i64>, %key : !inter.rows<unit, i64>",
    f"%y : {rows('g', '3xf64')}",
    """
%s = inter.at %g[src], %i : !inter.rows<g, i64>
%r = inter.index %g[rel] : !inter.rows<g, i64>
%n = inter.add %s, %r : !inter.rows<g, i64>
%d = inter.dropout %e, %key over %g as %n {p = 0.4, site = 7} : !inter.rows<g, 3xf64>
%f = inter.mul %d, %e : !inter.rows<g, 3xf64>
%y = inter.dropout %f, %key over %g as %s {p = 0.4, site = 8} : !inter.rows<g, 3xf64>
""",
)

PROGRAMS["dropout of entries"] = program(
    f"%v : {rows('g', 'f64')} {{inter.needs_grad}}, %key : !inter.rows<unit, i64>",
    f"%y : {rows('N', 'f64')}",
    """
%i = inter.index %g[src] : !inter.rows<g, i64>
%j = inter.index %g[dst] : !inter.rows<g, i64>
%d = inter.dropout %v, %key over %g as %i at %j {p = 0.4, site = 7} : !inter.rows<g, f64>
%e = inter.mul %d, %v : !inter.rows<g, f64>
%y = inter.reduce sum %e over %g along src : !inter.rows<N, f64>
""",
)

PROGRAMS["statistics of all rows"] = program(
    X,
    "%y : !inter.rows<N, 3xf64>; %v : !inter.rows<unit, 3xf64>",
    """
%m = inter.reduce mean %x over %N along () : !inter.rows<unit, 3xf64>
%d = inter.sub %x, %m : !inter.rows<N, 3xf64>
%s = inter.mul %d, %d : !inter.rows<N, 3xf64>
%v = inter.reduce mean %s over %N along () : !inter.rows<unit, 3xf64>
%c = inter.const 0.1 : !inter.rows<unit, f64>
%w = inter.add %v, %c : !inter.rows<unit, 3xf64>
%r = inter.rsqrt %w : !inter.rows<unit, 3xf64>
%y = inter.mul %d, %r : !inter.rows<N, 3xf64>
""",
)

PROGRAMS["shapes"] = program(
    "%x : !inter.rows<N, 2x3xf64> {inter.needs_grad}",
    "%y : !inter.rows<N, 3x2xf64>; %z : !inter.rows<N, 5xf64>",
    """
%t = inter.transpose %x [1, 0] : !inter.rows<N, 3x2xf64>
%m = inter.row_reduce max %x [1] : !inter.rows<N, 2xf64>
%y = inter.mul %t, %m : !inter.rows<N, 3x2xf64>
%f = inter.reshape %y : !inter.rows<N, 6xf64>
%a = inter.slice %f {dim = 0, lo = 1, hi = 6, step = 2} : !inter.rows<N, 3xf64>
%b = inter.slice %f {dim = 0, lo = 0, hi = 2} : !inter.rows<N, 2xf64>
%z = inter.concat %a, %b {dim = 0} : !inter.rows<N, 5xf64>
""",
)

for _name, _spec, _x, _w, _out in (
    ("linear", "k,kf->f", "3", "3x2", "2"),
    ("linear transposed", "k,fk->f", "3", "2x3", "2"),
    ("linear of heads", "hk,khf->hf", "2x3", "3x2x4", "2x4"),
    ("linear of many rows", "lk,kf->lf", "2x3", "3x4", "2x4"),
    ("linear of heads and rows", "lhk,hkf->lhf", "2x3x2", "3x2x4", "2x3x4"),
    ("linear over two letters", "ab,abf->f", "2x3", "2x3x2", "2"),
    ("linear with mixed letters", "ab,fba->f", "2x3", "2x3x2", "2"),
    ("linear turned round", "ab,bf->fa", "2x3", "3x4", "4x2"),
    ("dot with a row", "k,k->", "3", "3", ""),
    ("dot of heads", "hk,hk->h", "2x3", "2x3", "2"),
    ("outer with a row", "k,f->kf", "3", "2", "3x2"),
    ("scale", "k,->k", "3", "", "3"),
):
    _types = [f"{t}xf64" if t else "f64" for t in (_x, _w, _out)]
    PROGRAMS[_name] = program(
        f"%x : !inter.rows<N, {_types[0]}> {{inter.needs_grad}}, "
        f"%w : !inter.rows<unit, {_types[1]}> {{inter.needs_grad}}",
        f"%y : {rows('N', _types[2])}",
        f'%y = inter.contract "{_spec}" %x, %w : !inter.rows<N, {_types[2]}>',
    )

PROGRAMS["outer of ends, summed over edges"] = program(
    f"{X}, %d : !inter.rows<N, 2xf64> {{inter.needs_grad}}",
    "%s : !inter.rows<unit, 3x2xf64>",
    """
%a = inter.at %g[dst], %x : !inter.rows<g[dst], 3xf64>
%b = inter.at %g[dst], %d : !inter.rows<g[dst], 2xf64>
%o = inter.contract "k,f->kf" %a, %b : !inter.rows<g[dst], 3x2xf64>
%s = inter.reduce sum %o over %g along () : !inter.rows<unit, 3x2xf64>
""",
)

PROGRAMS["a value in two sums"] = program(
    E,
    f"%y : {rows('N', '3xf64')}; %z : {rows('N', '3xf64')}",
    """
%t = inter.exp %e : !inter.rows<g, 3xf64>
%y = inter.reduce sum %t over %g along dst : !inter.rows<N, 3xf64>
%z = inter.reduce max %t over %g along src : !inter.rows<N, 3xf64>
""",
)

PROGRAMS["an argument returned"] = program(
    X,
    f"%x : {rows('N', '3xf64')}; %y : {rows('N', '3xf64')}; %y : {rows('N', '3xf64')}",
    "%y = inter.neg %x : !inter.rows<N, 3xf64>",
).replace(
    "-> (!inter.rows<N, 3xf64>, !inter.rows<N, 3xf64>, !inter.rows<N, 3xf64>)",
    '-> (!inter.rows<N, 3xf64> {inter.name = "same"}, !inter.rows<N, 3xf64>, '
    '!inter.rows<N, 3xf64> {inter.name = "again"})',
)
