"""Texts of programs with many results of one kind, over all widths and element types."""

from __future__ import annotations

from collections.abc import Sequence

from gnnc.dialects.pointwise import POINTWISE

from .shared import program

PARAMETERS = {"leaky_relu": "{slope = 0.2}", "elu": "{alpha = 0.7}"}
POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "pow"}
"""Functions that are tried on the positive operand %p."""
OPERANDS = dict.fromkeys(("tan", "asin", "acos", "atanh"), "s") | {"acosh": "u"}
"""Those that are tried well inside of a domain, between the numbers -0.9 and 0.9 or above 1: near
its end, or a pole, their results change by far more than the rounding of an operand."""


def rows(dom: str, row: str, elem: str) -> str:
    """`!inter.rows<N, 3xf64>`; row "" is a single number."""
    return f"!inter.rows<{dom}, {row}x{elem}>" if row else f"!inter.rows<{dom}, {elem}>"


def is_float(elem: str) -> bool:
    return elem.startswith("f")


def pointwise(row: str, elem: str, other: str | None = None) -> str:
    """Every pointwise function and cast; second operands are rows of shape `other`."""
    other = row if other is None else other
    body: list[str] = []
    results: list[str] = []

    def add(name: str, text: str, t: str) -> None:
        body.append(f"%{name} = {text} : {t}")
        results.append(f"%{name} : {t}")

    if is_float(elem):
        of, one = rows("N", row, elem), rows("unit", "", elem)
        body += [f"%nine = inter.const 0.9 : {one}", f"%one = inter.const 1.0 : {one}"]
        body += [f"%t = inter.tanh %x : {of}", f"%s = inter.mul %t, %nine : {of}"]
        body += [f"%e = inter.exp %s : {of}", f"%u = inter.add %e, %one : {of}"]
    for name, spec in POINTWISE.items():
        if (spec.operands, is_float(elem)) in (("float", False), ("integer", True)):
            continue
        first = "p" if name in POSITIVE else OPERANDS.get(name, "x")
        operands = {"bool": "mk", "where": "mxy"}.get(spec.operands, f"{first}yp")[: spec.arity]
        elem_out = "i1" if "bool" in (spec.result, spec.operands) else elem
        text = ", ".join(f"%{o}" for o in operands)
        add(
            f"r_{name}",
            f"inter.{name} {text} {PARAMETERS.get(name, '')}",
            rows("N", row, elem_out),
        )
    if is_float(elem):
        add("r_rsqrt_zero", "inter.rsqrt %p {zero = 3.0}", rows("N", row, elem))
    for to in ("f32", "f64", "i32", "i64", "i1"):
        add(f"to_{to}", "inter.cast %x", rows("N", row, to))
        add(f"flag_to_{to}", "inter.cast %m", rows("N", row, to))
    arguments = (("x", row, elem), ("p", row, elem), ("m", row, "i1"))
    arguments += (("y", other, elem), ("k", other, "i1"))
    return program(
        ", ".join(f"%{n} : {rows('N', r, e)}" for n, r, e in arguments),
        "; ".join(results),
        "\n".join(body),
    )


def reductions(row: str, elem: str) -> str:
    """Every kind of reduction over edges, pairs, seen nodes and nodes, and softmax."""
    body = [f"%s = inter.at %g[src], %x : {rows('g[src]', row, elem)}"]
    results: list[str] = []
    places = (
        ("%e", "g", "dst", "N"),
        ("%e", "g", "(rel, dst)", "g[dst, rel]"),
        ("%e", "g", "()", "unit"),
        ("%s", "g[src]", "src", "N"),
        ("%q", "g[rel, src]", "rel", "R"),
        ("%x", "N", "()", "unit"),
    )
    for kind in ("sum", "mean", "max", "min", "mul"):
        if kind == "mean" and not is_float(elem):
            continue
        for k, (x, over, along, dom) in enumerate(places):
            t = rows(dom, row, elem)
            body.append(f"%{kind}_{k} = inter.reduce {kind} {x} over %{over} along {along} : {t}")
            results.append(f"%{kind}_{k} : {t}")
    t = rows("N", row, elem)
    body.append(f"%last = inter.reduce last %e over %g along dst else %x : {t}")
    results.append(f"%last : {t}")
    if is_float(elem):
        for name, along in (("softmax", "dst"), ("softmax_pairs", "(dst, rel)")):
            t = rows("g", row, elem)
            body.append(f"%{name} = inter.softmax %e over %g along {along} : {t}")
            results.append(f"%{name} : {t}")
    arguments = (("x", "N"), ("e", "g"), ("q", "g[rel, src]"))
    return program(
        ", ".join(f"%{n} : {rows(d, row, elem)}" for n, d in arguments),
        "; ".join(results),
        "\n".join(body),
    )


SPECS = (
    "k,kf->f",
    "k,fk->f",
    "hk,khf->hf",
    "hk,hkf->hf",
    "lk,kf->lf",
    "lhk,hkf->lhf",
    "hlk,hkf->hlf",
    "ab,abf->f",
    "ab,fba->f",
    "ab,bf->fa",
    "k,kab->ba",
    "k,abk->ab",
    "k,k->",
    "hk,hk->h",
    "hk,k->h",
    "k,f->kf",
    "k,->k",
    "hk,h->hk",
    "hk,kh->",
)
"""Products of a row and a matrix with shared rows (l), one matrix a head (h), groups of letters and
permuted matrices, and what is left: dots and outer products of two rows."""


def contractions(
    size: dict[str, int], elem: str, specs: Sequence[str] = SPECS, *, edges: bool = True
) -> str:
    """Each contraction with a single matrix; and with one an edge, summed, where `edges` says."""

    def shape(letters: str) -> str:
        return "x".join(str(size[c]) for c in letters)

    arguments: list[str] = []
    body: list[str] = []
    results: list[str] = []
    for i, spec in enumerate(specs):
        operands, out = spec.split("->")
        a, b = operands.split(",")
        for name, dom, letters in (("x", "N", a), ("w", "unit", b), ("e", "g", b)):
            if name != "e" or edges:
                t = rows(dom, shape(letters), elem)
                arguments.append(f"%{name}{i} : {t} {{inter.needs_grad}}")
        t = rows("N", shape(out), elem)
        body.append(f'%y{i} = inter.contract "{spec}" %x{i}, %w{i} : {t}')
        results.append(f"%y{i} : {t}")
        if edges:
            body.append(f"%s{i} = inter.at %g[src], %x{i} : {rows('g', shape(a), elem)}")
            z = rows("g", shape(out), elem)
            body.append(f'%z{i} = inter.contract "{spec}" %s{i}, %e{i} : {z}')
            body.append(f"%u{i} = inter.reduce sum %z{i} over %g along dst : {t}")
            results.append(f"%u{i} : {t}")
    return program(", ".join(arguments), "; ".join(results), "\n".join(body))


WHOLE = (
    "ab,bc->ac",
    "ac,bc->ab",
    "ac,ab->bc",
    "rb,bio->rio",
    "rio,bio->rb",
    "rio,rb->bio",
    "c,c->",
    # operands in which the innermost loop would jump, of long and of short contractions
    "ba,cb->ac",
    "ca,cb->ba",
    "orb,iob->ir",
    "or,ior->io",
    "ir,oi->ro",
)


def whole_weights(elem: str) -> str:
    """Contractions of single rows: matrices, stacks of them, and a sum of all numbers."""
    size = {"a": 9, "b": 7, "c": 2100, "r": 5, "i": 130, "o": 18}

    def row(letters: str) -> str:
        return rows("unit", "x".join(str(size[c]) for c in letters), elem)

    arguments: list[str] = []
    body: list[str] = []
    results: list[str] = []
    for k, spec in enumerate(WHOLE):
        operands, out = spec.split("->")
        a, b = operands.split(",")
        arguments += [f"%a{k} : {row(a)}", f"%b{k} : {row(b)}"]
        body.append(f'%y{k} = inter.contract "{spec}" %a{k}, %b{k} : {row(out)}')
        body.append(f"%z{k} = inter.add %y{k}, %y{k} : {row(out)}")
        results += [f"%y{k} : {row(out)}", f"%z{k} : {row(out)}"]
    return program(", ".join(arguments), "; ".join(results), "\n".join(body))


def layouts(heads: int, width: int, elem: str) -> str:
    """Ops that move numbers: reshape, transpose, broadcast, slice, concat, fold."""
    x = f"{heads}x{width}"
    total = heads * width
    half = (width + 1) // 2
    moves = (
        ("t", "inter.transpose %x [1, 0]", f"{width}x{heads}"),
        ("r", "inter.reshape %x", f"{total}"),
        ("u", "inter.transpose %t [1, 0]", x),
        ("b", "inter.broadcast %y", x),
        ("c", "inter.concat %x, %b {dim = 1}", f"{heads}x{2 * width}"),
        ("d", "inter.concat %x, %x, %b {dim = 0}", f"{3 * heads}x{width}"),
        ("e", f"inter.slice %x {{dim = 1, lo = 0, hi = {width}, step = 2}}", f"{heads}x{half}"),
        ("f", f"inter.slice %d {{dim = 0, lo = {heads}, hi = {2 * heads}}}", x),
        ("o", "inter.row_reduce sum %x [0]", f"{width}"),
        ("h", "inter.row_reduce max %x [1]", f"{heads}"),
        ("i", "inter.row_reduce min %x [0, 1]", ""),
        ("j", "inter.mul %x, %i", x),
        ("k", "inter.add %o, %y", f"{width}"),
        ("l", "inter.sub %c, %h1", f"{heads}x{2 * width}"),
    )
    body: list[str] = []
    for name, text, shape in moves:
        if name == "l":
            body.append(f"%h1 = inter.reshape %h : {rows('N', f'{heads}x1', elem)}")
        body.append(f"%{name} = {text} : {rows('N', shape, elem)}")
    results = "; ".join(f"%{name} : {rows('N', shape, elem)}" for name, _, shape in moves)
    arguments = f"%x : {rows('N', x, elem)}, %y : {rows('N', str(width), elem)}"
    return program(arguments, results, "\n".join(body))
