"""Random arguments for inter functions, and the check of autodiff against central differences."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from gnnc.dialects.attributes import GRAD, NEEDS_GRAD, UPDATE
from gnnc.dialects.inter.types import RowsType, SetType, is_float
from gnnc.dialects.meaning import run
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.graphs import random_arguments
from gnnc.dialects.signature import arg_attributes, name_of, result_attributes
from gnnc.passes.inter.autodiff import autodiff
from gnnc.passes.inter.dce_sets import dce_sets
from gnnc.passes.inter.differentiation.reverse import Reverse
from gnnc.passes.inter.unify_sets import unify_sets
from gnnc.passes.inter.verify_sets import verify_sets

GRAPHS = ("random", "hub", "empty")

Pass = Callable[[FuncOp], object]


def parse(text: str) -> tuple[ModuleOp, FuncOp]:
    """A module and its only function."""
    module = parse_module(text)
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    return module, func


def arguments(func: FuncOp, graph: str, seed: int, low: float) -> list[Any]:
    """Random arguments; `graph` is a kind of the set g, numbers are above `low` if that is
    positive."""
    r = np.random.default_rng(seed)
    args = random_arguments(func, r, {"g": 0 if graph == "empty" else 14, "N": 6})
    for i, (a, value) in enumerate(zip(func.body.block.args, args, strict=True)):
        if isinstance(a.type, SetType):
            if a.type.label == "g" and graph == "hub":
                value.maps["dst"][:] = value.maps["dst"][0]
        elif isinstance(a.type, RowsType) and is_float(a.type.elem) and low > 0:
            args[i] = low + np.abs(value)
    return args


def slopes(
    text: str,
    graph: str = "random",
    seed: int = 0,
    before: Sequence[Pass] = (),
    reverse: type[Reverse] = Reverse,
    low: float = 0.0,
) -> list[tuple[str, float, float]]:
    """For each wanted gradient, the slope of sum(cotangent * result) along a random direction: its
    argument's name, the slope by autodiff (0 where it gives no gradient), and by central
    differences of the plain program."""
    module, func = parse(text)
    plain = module.clone()
    name = func.sym_name.data
    args = arguments(func, graph, seed, low)
    marks = zip(func.body.block.args, arg_attributes(func), strict=True)
    wanted = {name_of(a, d, f"arg{i}"): i for i, (a, d) in enumerate(marks) if NEEDS_GRAD in d}
    unread = {i for i, a in enumerate(func.body.block.args) if not any(a.uses)}
    smooth = [
        isinstance(t, RowsType) and is_float(t.elem) and UPDATE not in d
        for t, d in zip(func.function_type.outputs, result_attributes(func), strict=True)
    ]
    for p in before:
        p(func)
    autodiff(func, reverse)
    for p in (verify_sets, dce_sets, unify_sets, verify_sets):
        p(func)
    module.verify()

    r = np.random.default_rng(seed + 1)
    results = run(plain, name, *args)
    cotangents = [r.standard_normal(y.shape) for y, s in zip(results, smooth, strict=True) if s]

    def loss(*values: Any) -> float:
        ys = [y for y, s in zip(run(plain, name, *values), smooth, strict=True) if s]
        return sum(float((c * y).sum()) for c, y in zip(cotangents, ys, strict=True))

    got = run(module, name, *args, *cotangents)
    for a, b in zip(results, got[: len(results)], strict=True):
        np.testing.assert_allclose(b, a, atol=1e-12)
    out: list[tuple[str, float, float]] = []
    gradients = dict.fromkeys(wanted, np.zeros(()))
    for attrs, gradient in zip(result_attributes(func), got, strict=True):
        if isinstance(of := attrs.get(GRAD), StringAttr):
            assert gradient.shape == args[wanted[of.data]].shape
            gradients[of.data] = gradient
    for argument, i in wanted.items():
        gradient = gradients[argument]
        assert np.all(np.isfinite(gradient))
        step = r.standard_normal(args[i].shape)
        slope = 0.0
        if i not in unread:
            ends = [loss(*args[:i], args[i] + e * step, *args[i + 1 :]) for e in (1e-5, -1e-5)]
            slope = (ends[0] - ends[1]) / 2e-5
        out.append((argument, float((gradient * step).sum()), slope))
    return out


def agree(found: Sequence[tuple[str, float, float]]) -> bool:
    """Whether autodiff and the differences say the same."""
    return all(abs(a - b) <= 1e-6 * (1 + abs(b)) for _, a, b in found)
