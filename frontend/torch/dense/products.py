"""Products of dense batches.

A product over the columns of two dense batches whose places are apart is one for each pair of nodes
of a graph; over the places of a graph it is a sum over its nodes.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from .align import is_one
from .functions import Call, of
from .values import GRAPH, KEY, PLACE, Dense, NotByRows, Places, is_all, shape_of, width

Operand = Any
"""A dense batch or a proxy."""


@of("matmul", "bmm", "mm")
def _matmul(c: Call) -> Any:
    a = c.arguments["input"]
    b = c.arguments["mat2" if "mat2" in c.arguments else "other"]
    return matmul(c.of, a, b)


def matmul(of: Places, a: Operand, b: Operand) -> Any:
    """The product over the last dimension of one and the last but one of the other."""
    p, q = sizes_of(a), sizes_of(b)
    if len(p) < 2 or len(q) < 2:
        raise NotByRows("a product with a vector")
    rank = max(len(p), len(q))
    letters = string.ascii_lowercase[: rank + 1]
    lead, (m, k, n) = letters[: rank - 2], letters[rank - 2 :]
    left = f"{lead[rank - len(p) :]}{m}{k}"
    right = f"{lead[rank - len(q) :]}{k}{n}"
    return product(of, f"{left},{right}->{lead}{m}{n}", a, b)


def sizes_of(x: Operand) -> tuple[Any, ...]:
    return x.axes if isinstance(x, Dense) else shape_of(x)


@of("einsum")
def _einsum(c: Call) -> Any:
    spec, *xs = c.arguments["args"]
    if len(xs) == 1 and isinstance(xs[0], tuple | list):
        xs = xs[0]
    if not isinstance(spec, str) or len(xs) != 2:
        raise NotByRows("einsum of other than two tensors")
    return product(c.of, _spelled(spec.replace(" ", ""), [len(sizes_of(x)) for x in xs]), *xs)


def _spelled(spec: str, ranks: Sequence[int]) -> str:
    """An equation with letters for its ellipses, and with a result."""
    left, arrow, out = spec.partition("->")
    if not arrow:
        raise NotByRows("einsum without a result")
    terms = left.split(",")
    free = [x for x in string.ascii_letters if x not in spec]
    widths = [r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True)]
    most = max([w for t, w in zip(terms, widths, strict=True) if "..." in t], default=0)
    dots = "".join(free[:most])
    terms = [t.replace("...", dots[most - w :]) for t, w in zip(terms, widths, strict=True)]
    return f"{','.join(terms)}->{out.replace('...', dots)}"


def product(of: Places, spec: str, a: Operand, b: Operand) -> Any:
    """einsum of two operands, a `Dense` or, where no dimension of places is left, a proxy."""
    left, out = spec.split("->")
    p, q = left.split(",")
    if (by_pairs := _by_pairs(of, p, a, q, b, out)) is not None:
        return by_pairs
    names = _names(of, ((p, a), (q, b)), out)
    if GRAPH not in names.values() or len({*names.values()}) < len(names):
        raise NotByRows(f"a product {spec} of different graphs")
    paired = KEY in names.values()
    given = a, b
    a, p = _not_repeated(a, p, {*names, *_repeating(b, q)})
    b, q = _not_repeated(b, q, {*names, *_repeating(a, p)})
    (a, p, a_is_row), (b, q, b_is_row) = (
        _at_rows(of, x, letters, names, paired) for letters, x in ((p, a), (q, b))
    )
    row = next(x for x in string.ascii_letters if x not in spec)
    columns = "".join(x for x in out if x not in names)
    one = f"{row * a_is_row}{p},{row * b_is_row}{q}->{row}{columns}"
    rows = of.computed(torch.einsum, one, a[0], b[0])
    at_pad = None
    if a[1] is not None and b[1] is not None:
        at_pad = of.computed(torch.einsum, one, a[1], b[1])
    result = tuple(names.get(x) or _size(x, one, a[0], b[0]) for x in out)
    zero = any(is_all(x, 0) and _is_finite(y) for x, y in ((a[1], b[1]), (b[1], a[1])))
    y = _result(Dense(of, result, rows, at_pad), names, zero)
    if not isinstance(y, Dense):
        of.sums[y.node] = spec, *given
    return y


def _is_finite(pad: Any) -> bool:
    """Whether nothing of it is nothing; of computed numbers this is taken to be so."""
    return not isinstance(pad, torch.Tensor) or bool(pad.isfinite().all())


def _by_pairs(of: Places, p: str, a: Operand, q: str, b: Operand, out: str) -> Any:
    """`a (k^T v)` as `(a k^T) v` where that is less work: where the graphs of the first call are
    small beside the columns of keys and values. Attention without a softmax is such a product."""
    if not isinstance(a, Dense) or isinstance(b, Dense) or b.node not in of.sums:
        return None
    spec, k, v = of.sums[b.node]
    left, made = spec.split("->")
    free = iter(x for x in string.ascii_letters if x not in p + q + out)
    names = dict(zip(made, q, strict=True))
    names |= {x: next(free) for x in dict.fromkeys(left) if x.isalpha() and x not in names}
    keys, values = ("".join(names[x] for x in term) for term in left.split(","))
    between = "".join(dict.fromkeys(x for x in p + keys if x in values + out))
    sizes: dict[str, int] = {}
    for letters, x in ((p, a), (keys, k), (values, v)):
        sizes |= {n: s for n, s in zip(letters, x.axes, strict=True) if not isinstance(s, str)}
    pairs, rows = (
        sum(math.prod(sizes.get(x, 1) for x in {*term}) for term in terms)
        for terms in ((p + keys, between + values), (keys + values, p + q))
    )
    if of.partners * pairs >= rows:
        return None
    return product(of, f"{between},{values}->{out}", product(of, f"{p},{keys}->{between}", a, k), v)


def _names(of: Places, operands: Sequence[tuple[str, Operand]], out: str) -> dict[str, str]:
    """Which letters are graphs, places, and the places of the second nodes of pairs."""
    names: dict[str, str] = {}
    places: list[str] = []
    for letters, x in operands:
        if not isinstance(x, Dense):
            continue
        for letter, axis in zip(letters, x.axes, strict=True):
            if axis == GRAPH:
                names[letter] = GRAPH
            elif isinstance(axis, str):
                if x.paired and names.setdefault(letter, axis) != axis:
                    raise NotByRows("pairs the other way round")
                if letter not in places:
                    places.append(letter)
    if len(places) > 2:
        raise NotByRows("a product over three dimensions of places")
    if not any(x.paired for _, x in operands if isinstance(x, Dense)):
        names |= dict(zip(places, (PLACE, KEY), strict=False))
    elif any(x not in names for x in places):
        raise NotByRows("a product over three dimensions of places")
    return names


def _repeating(x: Operand, letters: str) -> list[str]:
    """The dimensions along which an operand is not itself repeated by a product."""
    return [n for n, size in zip(letters, sizes_of(x), strict=True) if not is_one(size)]


def _not_repeated(x: Operand, letters: str, others: set[str]) -> tuple[Operand, str]:
    """What an operand repeats along dimensions that others have, without these."""
    if isinstance(x, Dense) or x.node.target != "expand":
        return x, letters
    source = fx.Proxy(x.node.args[0], x.tracer)
    sizes, before = shape_of(x), shape_of(source)
    new = len(sizes) - len(before)
    repeats = [
        i < new or (is_one(before[i - new]) and not is_one(sizes[i])) for i in range(len(sizes))
    ]
    if not {letter for letter, again in zip(letters, repeats, strict=True) if again} <= others:
        return x, letters
    for i in reversed(range(new, len(sizes))):
        source = source.squeeze(i - new) if repeats[i] else source
    return source, "".join(n for n, again in zip(letters, repeats, strict=True) if not again)


def _at_rows(
    of: Places, x: Operand, letters: str, names: dict[str, str], paired: bool
) -> tuple[tuple[Any, Any], str, bool]:
    """An operand at the rows of a product and at the pad, the letters of its columns, and whether
    it has rows at all."""
    if isinstance(x, Dense):
        columns = "".join(n for n in letters if n not in names)
        rows, pad = x.all_rows(), x.pad
        if paired and not x.paired:
            key = KEY in (names.get(n) for n in letters)
            rows = rows.index_select(0, of.ends[key])
            pad = pad if key else None
        return (rows, pad), columns, True
    kept, graph = "", None
    for d, (letter, size) in reversed([*enumerate(zip(letters, shape_of(x), strict=True))]):
        if is_one(size) and letter in names:
            x = x.squeeze(d)
            graph = None if graph is None else graph - 1
        elif names.get(letter) == GRAPH and of.is_graphs(size):
            graph = d
        elif letter in names:
            raise NotByRows(f"a tensor with a row for each {names[letter]}")
        else:
            kept = letter + kept
    if graph is None:
        return (x, x), kept, False
    x = x.movedim(graph, 0) if graph else x
    return (x.index_select(0, of.graph_of_pairs if paired else of.batch), None), kept, True


def _size(letter: str, spec: str, a: fx.Proxy, b: fx.Proxy) -> int:
    p, q = spec.split("->")[0].split(",")
    sizes = [shape_of(x)[t.index(letter)] for t, x in ((p, a), (q, b)) if letter in t]
    return next((width(n) for n in sizes if not is_one(n)), 1)


def _result(x: Dense, names: dict[str, str], zero: bool) -> Any:
    """The product with the places summed that its result does not have; `zero`: an operand is 0
    at all places behind those of nodes."""
    gone = [n for n in names.values() if n not in x.axes]
    if not gone:
        return x
    of, reduce = x.of, torch.ops.gnnc.segment_reduce
    if gone == [KEY]:
        if not zero:
            raise NotByRows("a sum over places that no mask leaves out")
        rows = reduce(x.rows, of.ends[0], 0, of.count, "sum")
        return Dense(of, x.axes, rows, None)
    if gone != [PLACE] or KEY in x.axes:
        raise NotByRows(f"a product over {gone}")
    if not zero:
        raise NotByRows("a product over places that no mask leaves out")
    y = reduce(x.rows, of.batch, 0, of.graphs, "sum")
    graph = x.axes.index(GRAPH)
    return y.movedim(0, graph) if graph else y
