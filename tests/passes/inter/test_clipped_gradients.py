"""update-parameters: gradients that are summed over calls and clipped, as torch does."""

import numpy as np
import pytest
import torch

from gnnc.dialects.meaning.check import same_meaning
from gnnc.dialects.meaning.inter import run
from gnnc.dialects.meaning.world import SetVal
from gnnc.passes.driver.pipelines import pipeline
from gnnc.passes.targets.openmp import OPENMP

from ..lowered import after

ROWS = 5
WAYS = (["value"], ["norm-2"], ["norm-inf"], ["value", "norm-2"], ["norm-2", "value"])


def program(ways: list[str], dims: str = "3", sums: bool = False, rule: str = "sgd") -> str:
    """A loss of W, a table T with a row a node, and a number S of another type; dW is the sum of
    rows of x, dT is x and dS the number of nodes."""
    row, axes = f"{dims}xf64", ", ".join(str(i) for i in range(dims.count("x") + 1))
    listed = ", ".join(f'"{way}"' for way in ways)
    types = {
        "W": f"!inter.rows<unit, {row}>",
        "T": f"!inter.rows<N, {row}>",
        "S": "!inter.rows<unit, f32>",
    }
    args: list[str] = []
    for name, t in types.items():
        chosen = f', inter.optimizer = "{rule}"' if rule else ""
        args.append(f"%{name} : {t} {{inter.needs_grad{chosen}}}")
        if rule:
            elem = "f32" if name == "S" else "f64"
            args.append(f'%n{name} : !inter.rows<unit, 3x{elem}> {{inter.state_of = "{name}"}}')
        if sums:
            args.append(f'%s{name} : {t} {{inter.sum_of = "{name}"}}')
    if ways:
        args.append(f"%c : !inter.rows<unit, {len(ways)}xf64> {{inter.clip = [{listed}]}}")
    return f"""
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, {row}>, {", ".join(args)})
    -> (!inter.rows<unit, f64>) {{
  %p = inter.add %W, %T : !inter.rows<N, {row}>
  %q = inter.mul %p, %x : !inter.rows<N, {row}>
  %r = inter.row_reduce sum %q [{axes}] : !inter.rows<N, f64>
  %s64 = inter.cast %S : !inter.rows<unit, f64>
  %u = inter.add %r, %s64 : !inter.rows<N, f64>
  %l = inter.reduce sum %u over %N along () : !inter.rows<unit, f64>
  func.return %l : !inter.rows<unit, f64>
}}
"""


def clipped_by_torch(ways: list[str], bounds: list[float], gradients: list[np.ndarray]) -> list:
    parameters = [torch.nn.Parameter(torch.zeros_like(torch.from_numpy(g))) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = torch.from_numpy(g.copy())
    for way, bound in zip(ways, bounds, strict=True):
        if way == "value":
            torch.nn.utils.clip_grad_value_(parameters, bound)
        else:
            kind = float(way.partition("-")[2])
            torch.nn.utils.clip_grad_norm_(parameters, bound, kind)
    return [p.grad.numpy() for p in parameters if p.grad is not None]


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("bound", [0.7, 1000.0])
@pytest.mark.parametrize("special", [1.0, np.inf, np.nan])
@pytest.mark.parametrize("sums", [False, True])
def test_gradients_are_clipped_as_by_torch(
    ways: list[str], bound: float, special: float, sums: bool
) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3))
    x[1, 1] *= special
    gradients = [x.sum(0, keepdims=True), x, np.array([ROWS], np.float32)]
    before = [rng.normal(size=g.shape).astype(g.dtype) for g in gradients] if sums else []
    bounds = [bound * (i + 1) for i in range(len(ways))]
    values = [np.zeros((1, 3)), np.zeros((ROWS, 3)), np.zeros(1, np.float32)]
    args: list[np.ndarray] = []
    for i, v in enumerate(values):
        numbers = np.array([[1.0, 0.0, -1.0]], v.dtype)  # a step along the gradient
        args += [v, numbers, *before[i : i + 1]]
    module = after(program(ways, sums=sums), "autodiff,update-parameters")
    _, *new = run(module, "main", SetVal(ROWS, {}), x, *args, np.array([bounds]))
    taken = [g + s for g, s in zip(gradients, before, strict=True)] if sums else gradients
    for got, want in zip(new, clipped_by_torch(ways, bounds, taken), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)  # torch rounds what is of S


@pytest.mark.one_in(2)
@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("dims", ["3", "40x32x16"])
@pytest.mark.parametrize("sums", [False, True])
def test_the_whole_pipeline_keeps_the_meaning(ways: list[str], dims: str, sums: bool) -> None:
    stages = pipeline(True, OPENMP).split("lower-to-intra")
    whole = after(program(ways, dims, sums), "autodiff,update-parameters")
    split = after(program(ways, dims, sums), stages[0].rstrip(","))
    same_meaning(whole, split, seeds=range(2))
    same_meaning(split, after(split, f"lower-to-intra{stages[1]}"), seeds=range(2))


def test_sums_alone_keep_the_meaning() -> None:
    text = program([], sums=True, rule="")
    stages = pipeline(True, OPENMP).split("lower-to-intra")
    whole = after(text, "autodiff,update-parameters")
    rng = np.random.default_rng(0)
    x, w, t = rng.normal(size=(ROWS, 3)), rng.normal(size=(1, 3)), rng.normal(size=(ROWS, 3))
    one = np.ones(1, np.float32)
    _, dw, dt, ds = run(whole, "main", SetVal(ROWS, {}), x, w, w, t, t, one, one)
    np.testing.assert_allclose(dw, w + x.sum(0))
    np.testing.assert_allclose(dt, t + x)
    np.testing.assert_allclose(ds, ROWS + one)
    split = after(text, stages[0].rstrip(","))
    same_meaning(whole, split, seeds=range(2))
    same_meaning(split, after(split, f"lower-to-intra{stages[1]}"), seeds=range(2))
