"""NaN, infinities, signed zeros, ties and seams: compiled functions give torch's numbers there, in
value and gradient, for single numbers and for vectors with a tail."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import gnnc

Functions = dict[str, Callable[..., Tensor]]

NAN, INF = math.nan, math.inf
NUMBERS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 6.0, 7.0, 20.0]
NUMBERS += [21.0, -20.0, -21.0, 89.0, -105.0, 0.75, -0.99]
PAIRS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0]
WIDTH = 11

ELEMENTARY: Functions = {
    name: getattr(torch, name)
    for name in "neg exp log log1p log2 expm1 sqrt rsqrt abs sign relu tanh sigmoid erf erfinv sin "
    "cos floor ceil square reciprocal isnan isinf isfinite logical_not".split()
} | {
    "nan_to_num": lambda x: x.nan_to_num(1.0, 2.0, 3.0),
    "clamp": lambda x: x.clamp(-1, 2),
    "clamp-min": lambda x: x.clamp(min=0),
    "clamp-max": lambda x: x.clamp(max=0.0),
    "clamp-crossed": lambda x: x.clamp(2, -1),
    **{f"power{p}": lambda x, p=p: x**p for p in (0, 1, 2, 3, 4, 0.5, -0.5, -1, -2, 1.5, 2.5)},
    "two-power": lambda x: 2.0**x,
    "zero-power": lambda x: torch.pow(0.0, x),
    "one-power": lambda x: torch.pow(1.0, x),
    "tenth": lambda x: x * 0.1,
    "times-zero": lambda x: x * 0.0,
    "plus-zero": lambda x: x + 0.0,
    "zero-plus": lambda x: 0.0 + x,
    "minus-zero": lambda x: x - 0.0,
    "zero-minus": lambda x: 0.0 - x,
    "by-zero": lambda x: x / 0,
    "from-zero": lambda x: torch.maximum(x, torch.zeros(())),
    "unselected-log": lambda x: torch.where(x > 0, x.log(), 0.0),
    "masked": lambda x: x.masked_fill(x < 0, 0.0),
    "unequal": lambda x: x != x,
    "truth": lambda x: x.bool(),
    "relu-twice": lambda x: x.relu().relu(),
    "abs-of-neg": lambda x: (-x).abs(),
    "difference": lambda x: x - x,
}
ACTIVATIONS: Functions = {
    f.__name__: f
    for f in (F.relu6, F.leaky_relu, F.elu, F.celu, F.selu, F.gelu, F.silu, F.mish, F.hardsigmoid)
    + (F.hardswish, F.hardtanh, F.hardshrink, F.softshrink, F.tanhshrink, F.softsign, F.softplus)
    + (F.logsigmoid,)
} | {
    "leaky_relu-negative": lambda x: F.leaky_relu(x, -0.3),
    "elu-negative": lambda x: F.elu(x, -0.5),
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "threshold": lambda x: F.threshold(x, 0.5, -7.0),
}
BINARY: Functions = {
    name: getattr(torch, name)
    for name in "add sub mul div maximum minimum pow atan2 eq ne lt le gt ge".split()
} | {
    "where": lambda x, y: torch.where(x > y, x, y),
    "clamp-tensor": lambda x, y: x.clamp(min=y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp-far": lambda x, y: torch.lerp(x, y, 0.7),
    "lerp-by-end": lambda x, y: torch.lerp(x, y, y),
}
ROWS: Functions = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "sum": lambda x: x.sum(-1),
    "amax": lambda x: x.amax(-1),
    "amax-of-one": lambda x: x[:, :1].amax(-1),
    "amin": lambda x: x.amin(-1),
    "max": lambda x: x.max(-1)[0],
    "min": lambda x: x.min(-1)[0],
    "argmax": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(-1),
    "norm": lambda x: x.norm(dim=-1),
    "norm-1": lambda x: x.norm(p=1, dim=-1),
    "norm-inf": lambda x: x.norm(p=INF, dim=-1),
    "std": lambda x: x.std(-1),
    "var": lambda x: x.var(-1),
    "any": lambda x: (x > 0).any(-1),
    "all": lambda x: (x > 0).all(-1),
}
EVERYTHING: Functions = {
    "greatest": lambda x: x.max(),
    "least": lambda x: x.min(),
    "greatest-of-column": lambda x: x[:, 0].max(),
    "amax": lambda x: x.amax(),
    "amin": lambda x: x.amin((0, 1)),
    "amax-of-column": lambda x: x[:, 0].amax(),
    "norm-inf": lambda x: x.norm(p=INF),
}

TWO_ANSWERS = {"relu6", "elu", "celu", "selu", "hardswish", "hardtanh", "hardshrink", "softshrink"}
TWO_ANSWERS |= {"elu-negative"}
"""torch's gradients of NaN differ between its vectors and the numbers left over."""

EITHER_ZERO = {"clamp-tensor", "from-zero", "softshrink", "gelu"}
"""Of a zero and its negative torch's vectors and single numbers take different ones, or those of
processors with AVX-512 and without."""

KNOWN: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": torch.isinf,  # NaN in torch's vectors of f32, infinite in its single numbers
    "power-0.5": lambda x: torch.isinf(x) | ((x == 0) & x.signbit()),  # rsqrt's own gradient
}
"""Where another number than torch's is as good."""


def single_numbers(dtype: torch.dtype) -> list[Tensor]:
    return [torch.tensor(NUMBERS, dtype=dtype)]


def vectors(dtype: torch.dtype) -> list[Tensor]:
    x = torch.tensor(NUMBERS, dtype=dtype)
    return [torch.stack([x.roll(-i) for i in range(WIDTH)], 1).contiguous()]


def rows(dtype: torch.dtype) -> list[Tensor]:
    """Ties, equal rows, zeros, -inf everywhere, one NaN or infinity, nothing but NaN."""
    x = torch.arange(10 * WIDTH, dtype=dtype).view(10, WIDTH).sin()
    x[0], x[1], x[2], x[3] = 0.0, 2.0, -INF, NAN
    x[4] = torch.tensor([3.0, 1, 3, -1, -1, 3, 1, 0, -1, 3, 0])
    x[5, 4], x[6, 2], x[6, 7], x[7, 0], x[8, 10] = NAN, INF, INF, -INF, NAN
    return [x]


def pairs(dtype: torch.dtype) -> list[Tensor]:
    x = torch.tensor(PAIRS, dtype=dtype)
    return [a.contiguous() for a in torch.meshgrid(x, x, indexing="ij")]


def outcome(f: Callable[..., list[Tensor]], args: list[Tensor], each: int):
    """The results, and of each the gradients of its own arguments; zeros for None."""
    mine = [x.clone().requires_grad_() for x in args]
    out, found = f(*mine), []
    for k, y in enumerate(out):
        own = mine[each * k : each * (k + 1)]
        found.append([torch.zeros_like(x) for x in own])
        if y.requires_grad:
            ones = torch.full_like(y, 1.5)
            grads = torch.autograd.grad(y, own, ones, retain_graph=True, allow_unused=True)
            found[-1] = [torch.zeros_like(x) if g is None else g for x, g in zip(own, grads)]
    return [y.detach() for y in out], found


def same(got: Tensor, want: Tensor, signs: bool) -> Tensor:
    """Where two tensors agree; zeros by their sign where that is asked."""
    if not want.is_floating_point():
        return got == want
    near = 2e-5 if want.dtype == torch.float32 else 1e-9
    equal = torch.isclose(got, want, rtol=near, atol=near / 20, equal_nan=True)
    zeros = (got == 0) & (want == 0)
    return equal & ~(zeros & (got.signbit() != want.signbit())) if signs else equal


def compare(functions: Functions, inputs: list[Tensor]) -> None:
    """All functions in one program, each on arguments of its own."""
    each, names = len(inputs), list(functions)
    wrong: list[str] = []

    def f(*xs: Tensor) -> list[Tensor]:
        return [functions[n](*xs[each * k : each * (k + 1)]) for k, n in enumerate(names)]

    args = [x for _ in names for x in inputs]
    compiled = gnnc.compile(f)
    want, got = outcome(f, args, each), outcome(compiled, args, each)
    for k, name in enumerate(names):
        a, b, x = want[0][k], got[0][k], inputs[0]
        assert a.dtype == b.dtype and a.shape == b.shape, name
        free = KNOWN.get(name, torch.zeros_like)(x).bool()
        agree = same(b, a, signs=name not in EITHER_ZERO)
        wrong += [] if (agree | free if agree.shape == x.shape else agree).all() else [name]
        for da, db in zip(want[1][k], got[1][k], strict=True):
            either = free | (x.isnan() if name in TWO_ANSWERS else False)
            wrong += [] if (same(db, da, False) | either).all() else [f"gradient of {name}"]
    assert not wrong
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and report.kernels


BOTH = [
    pytest.param(torch.float32, id="f32"),
    pytest.param(torch.float64, id="f64", marks=pytest.mark.long),
]


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("place", [single_numbers, vectors])
@pytest.mark.parametrize("functions", [ELEMENTARY, ACTIVATIONS], ids=["elementary", "activations"])
def test_functions_of_one_number(functions, place, dtype):
    compare(functions, place(dtype))


@pytest.mark.parametrize("dtype", BOTH)
def test_functions_of_two_numbers(dtype):
    compare(BINARY, pairs(dtype))


@pytest.mark.parametrize("dtype", BOTH)
def test_functions_of_rows(dtype):
    compare(ROWS, rows(dtype))


def test_equal_numbers_do_not_vary():
    """Their mean is one of them, whatever rounding takes their sum for: a standard deviation that
    is not quite 0 has gradients of the size of 1, that of 0 has none."""
    x = torch.arange(40.0).sin()[:, None].expand(-1, 7)
    compare({"std": lambda x: x.std(-1), "var": lambda x: x.var(-1)}, [x.contiguous()])
    compare({"rows": lambda x: x.std(0)}, [x.t().contiguous()])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "numbers",
    [
        [[3, 1, 2], [3, 3, 0], [-7, 0, 3], [1, -7, -7]],
        [[-0.0, -0.0], [-0.0, -0.0]],
        [[INF, 1, INF], [0, INF, -2]],
        [[INF, -INF, -INF], [-INF, 2, INF]],
        [[-INF, -INF], [-INF, -INF]],
        [[NAN, 1, NAN], [2, NAN, INF]],
    ],
)
def test_functions_of_everything(numbers):
    """The gradient of an extremum is dealt to all that are it, in whatever rows and columns."""
    compare(EVERYTHING, [torch.tensor(numbers, dtype=torch.float64)])


FILLED: Functions = {
    "divisor": lambda x: x / -0.0,
    "less": lambda x: x.clamp(min=-0.0),
    "chosen": lambda x: torch.where(x > 0, x, -0.0),
    "quotient": lambda x: x / torch.full_like(x, -0.0),
    "both": lambda x: x / torch.full_like(x, -0.0) + torch.where(x > 0, 1 / torch.zeros_like(x), x),
    "filled": lambda x: torch.full_like(x, -0.0),
    "threshold": lambda x: torch.nn.functional.threshold(x, 0.5, -0.0),
    "mask": lambda x: x.masked_fill(x > 0.5, -0.0),
    "put together": lambda x: torch.cat([torch.zeros_like(x), torch.full_like(x, -0.0)], -1)[
        ..., -3:
    ],
}


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("place", [single_numbers, vectors])
def test_a_negative_zero_that_fills_rows(place, dtype):
    compare(FILLED, place(dtype))


INTEGERS: Functions = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a, b: -a,
    "abs": lambda a, b: a.abs(),
    "sign": lambda a, b: a.sign(),
    "square": lambda a, b: a * a,
    "maximum": torch.maximum,
    "quotient": torch.div,
    "third": lambda a, b: a // 3,
    "minus-third": lambda a, b: a // -3,
    "opposite": lambda a, b: a // -1,
    "rest": lambda a, b: a % 3,
    "minus-rest": lambda a, b: a % -3,
    "clamp": lambda a, b: a.clamp(-2, 5),
    "int": lambda a, b: a.int(),
    "float": lambda a, b: a.float(),
    "half": lambda a, b: a + 0.5,
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=["i32", "i64"])
def test_integers_wrap_around(dtype):
    ends = torch.iinfo(dtype)
    x = torch.tensor([0, 1, -1, 2, -2, 7, -7, ends.max, ends.min, ends.max - 1], dtype=dtype)
    a, b = torch.meshgrid(x, x, indexing="ij")
    compiled = gnnc.compile(lambda a, b: [f(a, b) for f in INTEGERS.values()])
    for name, got in zip(INTEGERS, compiled(a.contiguous(), b.contiguous()), strict=True):
        want = INTEGERS[name](a, b)
        assert got.dtype == want.dtype and same(got, want, True).all(), name
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and report.kernels


@pytest.mark.parametrize("f", [torch.floor_divide, torch.remainder])
def test_integers_divided_by_zero_raise_as_in_torch(f):
    x = torch.arange(12).view(4, 3)
    compiled = gnnc.compile(lambda a, b: f(a, b).float() * 2)
    assert torch.equal(compiled(x, x + 1), f(x, x + 1).float() * 2)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compiled(x, x)


def test_casts_of_what_no_integer_is():
    x = torch.tensor([NAN, INF, -INF, -0.0, 1.9, -1.9, 3e9, -3e9, 1e19, -1e19] * 3).view(-1, 10)
    compiled = gnnc.compile(lambda x: [x.int(), x.long(), x.bool()])
    for got, want in zip(compiled(x), [x.int(), x.long(), x.bool()], strict=True):
        assert torch.equal(got, want)


def test_constants_of_another_precision():
    """A number of Python is a double; a tensor of f32 is rounded before it meets one of f64."""

    def f(x: Tensor) -> list[Tensor]:
        tenth = torch.full((1,), 0.1, dtype=torch.float32)
        return [x * 0.1, x * tenth.double(), x + torch.full((), 0.1, dtype=torch.float32)]

    x = torch.ones(5, dtype=torch.float64)
    for got, want in zip(gnnc.compile(f)(x), f(x), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("kind", ["amax", "amin"])
def test_extremes_of_groups(kind):
    """NaN, ties, -inf and empty groups, in value and gradient."""
    index = torch.tensor([0, 0, 0, 1, 1, 3, 3, 4, 4])

    def f(x: Tensor, index: Tensor) -> list[Tensor]:
        start = torch.zeros(6, x.size(1), dtype=x.dtype)
        return [start.scatter_reduce(0, index[:, None].expand_as(x), x, kind, include_self=False)]

    x = torch.ones(9, 3, dtype=torch.float64)
    x[1, 0], x[3, 1], x[5], x[6], x[7], x[8, 2] = NAN, 4.0, -INF, -INF, -2.0, INF
    compiled = gnnc.compile(f)
    found = []
    for g in (f, compiled):
        mine = x.clone().requires_grad_()
        (y,) = g(mine, index)
        (y * torch.arange(1.0, 4.0)).sum().backward()
        found.append((y.detach(), mine.grad))
    for got, want in zip(found[1], found[0], strict=True):
        assert torch.allclose(got, want, equal_nan=True)
    assert gnnc.explain(compiled).fallbacks == []
