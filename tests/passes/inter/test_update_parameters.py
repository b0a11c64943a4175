"""update-parameters: the rules give what torch's formulas do, and lower as all else."""

import numpy as np
import pytest

from gnnc.dialects.meaning.check import parse_module, same_meaning
from gnnc.dialects.meaning.inter import run
from gnnc.dialects.meaning.world import SetVal
from gnnc.passes.driver.pipelines import pipeline
from gnnc.passes.inter.optimizers import COUNT, RULES
from gnnc.passes.targets.openmp import OPENMP

from ..lowered import after, phase

W, DW = np.array([[0.5, -1.0, 2.0]]), np.array([[3.0, -1.0, 0.0]])
N = {
    "rate": 0.1,
    "weight_decay": 0.2,
    "sign": -1.0,
    "keep": 0.9,
    "mean_weight": 0.1,
    "beta2": 0.99,
    "square_weight": 0.01,
    "root_scale": 1.25,
    "eps": 0.001,
    "momentum": 0.8,
    "undamped": 0.7,
    "alpha": 0.6,
}
STATE = {
    "step": np.array([4.0]),
    "exp_avg": np.array([[0.3, -0.1, 0.0]]),
    "exp_avg_sq": np.array([[0.5, 0.1, 0.0]]),
    "max_exp_avg_sq": np.array([[0.2, 0.3, 0.0]]),
    "momentum_buffer": np.array([[0.3, -0.1, 0.0]]),
    "sum": np.array([[0.2, 0.3, 0.0]]),
    "square_avg": np.array([[0.5, 0.1, 0.0]]),
    "grad_avg": np.array([[0.3, -0.1, 0.0]]),
}


def program(rule: str, dims: str = "3", elem: str = "f64") -> str:
    """A loss of W and x whose gradient is the sum of rows of x."""
    row = f"!inter.rows<unit, {dims}x{elem}>"
    one = f"!inter.rows<unit, {elem}>"
    state = [f"%{s} : {one if s == COUNT else row}" for s in RULES[rule].state]
    numbers = f"%n : !inter.rows<unit, {len(RULES[rule].numbers)}x{elem}>"
    own = ", ".join(f'{a} {{inter.state_of = "W"}}' for a in (*state, numbers))
    axes = ", ".join(str(i) for i in range(dims.count("x") + 1))
    return f"""
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, {dims}x{elem}>,
    %W : {row} {{inter.needs_grad, inter.optimizer = "{rule}"}}, {own})
    -> (!inter.rows<unit, {elem}>) {{
  %p = inter.mul %x, %W : !inter.rows<N, {dims}x{elem}>
  %s = inter.row_reduce sum %p [{axes}] : !inter.rows<N, {elem}>
  %l = inter.reduce sum %s over %N along () : !inter.rows<unit, {elem}>
  func.return %l : !inter.rows<unit, {elem}>
}}
"""


def expected(rule: str) -> list[np.ndarray]:
    """The new parameter and state, by the formulas of torch.optim."""
    g = N["sign"] * DW + N["weight_decay"] * W
    if rule == "sgd":
        return [W - N["rate"] * g]
    if rule in ("momentum", "nesterov"):
        v = N["momentum"] * STATE["momentum_buffer"] + N["undamped"] * g
        return [W - N["rate"] * (v if rule == "momentum" else g + N["momentum"] * v), v]
    if rule == "adagrad":
        total = STATE["sum"] + g * g
        return [W - N["rate"] * g / (np.sqrt(total) + N["eps"]), STATE["step"] + 1, total]
    if rule.startswith("rmsprop"):
        return rmsprop(g, "momentum" in rule, "centered" in rule)
    m = STATE["exp_avg"] + (g - STATE["exp_avg"]) * N["mean_weight"]
    v = N["beta2"] * STATE["exp_avg_sq"] + N["square_weight"] * g * g
    top = [np.maximum(STATE["max_exp_avg_sq"], v)] if rule == "amsgrad" else []
    divisor = np.sqrt(top[0] if top else v) * N["root_scale"] + N["eps"]
    return [W * N["keep"] - N["rate"] * m / divisor, STATE["step"] + 1, m, v, *top]


def rmsprop(g: np.ndarray, momentum: bool, centered: bool) -> list[np.ndarray]:
    v = square = N["alpha"] * STATE["square_avg"] + N["square_weight"] * g * g
    buffer, mean = [], []
    if centered:
        mean = [STATE["grad_avg"] + (g - STATE["grad_avg"]) * N["square_weight"]]
        v = square - mean[0] ** 2
    direction = g / (np.sqrt(v) + N["eps"])
    if momentum:
        direction = N["momentum"] * STATE["momentum_buffer"] + direction
        buffer = [direction]
    return [W - N["rate"] * direction, STATE["step"] + 1, square, *buffer, *mean]


@pytest.mark.parametrize("rule", RULES)
def test_rules_are_those_of_torch(rule: str) -> None:
    module = after(program(rule), "autodiff,update-parameters")
    numbers = np.array([[N[name] for name in RULES[rule].numbers]])
    x = np.array([[1.0, 1.0, -2.0], [2.0, -2.0, 2.0]])  # sums to DW
    state = [STATE[name] for name in RULES[rule].state]
    loss, *new = run(module, "main", SetVal(len(x), {}), x, W, *state, numbers)
    np.testing.assert_allclose(loss, (x * W).sum())
    for got, want in zip(new, expected(rule), strict=True):
        np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("rule", ["adam", "nesterov", "rmsprop-centered-momentum"])
@pytest.mark.parametrize("dims", ["3", "8x5", "40x32x16"])
def test_the_whole_pipeline_keeps_the_meaning(rule: str, dims: str) -> None:
    """Also of rows that split-long-rows cuts into pieces."""
    stages = pipeline(True, OPENMP).split("lower-to-intra")
    whole = after(program(rule, dims), "autodiff,update-parameters")
    split = after(program(rule, dims), stages[0].rstrip(","))
    same_meaning(whole, split, seeds=range(2))
    same_meaning(split, after(split, f"lower-to-intra{stages[1]}"), seeds=range(2))


def test_nothing_is_left_for_a_backward_phase() -> None:
    module = after(program("adam"), pipeline(True, OPENMP))
    names = {f.sym_name.data for f in module.body.block.ops}  # type: ignore[attr-defined]
    assert names == {"structure", "prepare", "forward"}
    assert "new_W" in str(phase(module))


def test_functions_without_rules_stay() -> None:
    text = program("sgd").replace(', inter.optimizer = "sgd"', "")
    before = after(parse_module(text), "autodiff")
    assert str(after(before, "update-parameters")) == str(before)
