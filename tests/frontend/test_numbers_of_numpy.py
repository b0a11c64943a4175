"""Numbers of NumPy are numbers to torch, compiled as well: no tensors, whose types would count."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gnnc

from .contract import check

X = torch.linspace(-1, 2, 20).view(5, 4).requires_grad_()
SCALE = np.sqrt(3)


class Scaled(nn.Module):
    """Sums and integers scaled by numbers of NumPy: kept, global, of constants and of sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = np.sqrt(2)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        n = torch.arange(6)
        return (
            x.sum() * self.scale,
            x.mean() / SCALE,
            n * self.scale,
            n / np.float64(2),
            x.sum() * np.sqrt(x.shape[0]) * np.log(x.shape[0]) * np.mean([1, 2, 4]),
            x.max() * np.log(2.0) ** np.int64(2),
        )


def test_numbers_have_no_type_of_their_own():
    wider = torch.randn(7, 4, requires_grad=True)
    assert check(Scaled(), [X], [wider]).fallbacks == []


NUMBERS = [
    *(np.float16(0.3), np.float32(0.3), np.float64(0.3), np.bool_(True)),
    *(np.int8(3), np.int32(3), np.int64(3), np.uint8(3), np.uint64(3)),
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda x: type(x).__name__)
def test_numbers_of_any_type(number: np.generic):
    """As torch, NumPy and Python take them: floats, of their own type to each other."""
    kind, n = type(number), torch.arange(6)

    def programs(x: Tensor) -> list[Tensor]:
        known = number > 0.1 and not isinstance(number, int) and type(number) is kind
        of_numpy = number * number + 2 * number - number / 3 + np.sqrt(number) - np.float32(number)
        return [
            *(x * number, number * x.float(), n * number, n.sum() / number),
            x.abs() ** number if known else x,
            torch.nn.functional.leaky_relu(x, number) + abs(of_numpy) * n.sum(),
            torch.add(x, x, alpha=float(number)) * number.item() + round(float(number), 1),
            *(x.clamp(number), torch.where(x > number, x, number), x + torch.full((4,), number)),
            x * torch.as_tensor([number * np.float32(1), 2.0])[0],
        ]

    assert check(programs, [X]).fallbacks == []


@pytest.mark.parametrize("number", [np.uint8(3), np.int8(100)], ids=["uint8", "int8"])
def test_whole_numbers_run_over_as_numpys(number: np.generic):
    with np.errstate(over="ignore"):
        check(lambda x: x * (number + number + number) + (number - number - number), [X])


def test_a_truth_of_numpys_is_one():
    check(lambda x, flag: x * 2 if flag else x.sum(0, keepdim=not flag), [X, np.True_])
    model = gnnc.compile(lambda x, flag: x * 2 if flag else x)
    for flag in (np.True_, np.False_):
        assert torch.equal(model(X, flag), X * 2 if flag else X)


def test_whole_numbers_are_sizes_and_dimensions():
    n = np.int64(2)
    check(lambda x: (x[:n], x.sum(n - 1), torch.cat([x] * n), x.transpose(n - 2, n - 1)), [X])


def test_tensors_made_of_numbers_have_their_type():
    def tensors(x: Tensor) -> list[Tensor]:
        half = np.float64(0.5)
        return [x.max() * torch.tensor(half), x + torch.as_tensor([1, half * 2])[0]]

    assert check(tensors, [X]).fallbacks == []


def test_arrays_made_of_numbers():
    def arrays(x: Tensor) -> list[Tensor]:
        return [x / len(np.arange(3)), x + torch.from_numpy(np.linspace(0, 1, 4))]

    assert check(arrays, [X]).fallbacks == []


def test_a_kept_number_that_changes():
    model = gnnc.compile(Scaled())
    model(X)
    model.scale = np.float64(5)
    assert torch.allclose(model(X)[0], X.sum() * 5)


def test_floats_of_sizes_are_left_to_numpy():
    report = check(lambda x: x.sum() * np.exp(x.shape[0]) + 1, [X], [X[:3].detach()])
    assert [f for f in report.fallbacks if "a function of NumPy that makes a float of sizes" in f]


@pytest.mark.parametrize("numbers", [Tensor.numpy, np.asarray], ids=["method", "function"])
def test_numpy_refuses_what_requires_a_gradient(numbers):
    """And takes it detached."""
    check(lambda x: torch.from_numpy(numbers(x * 2)) + x, [X], [X.detach()])


def test_random_numbers_are_numpys_own():
    compiled = gnnc.compile(lambda x: x + np.random.rand())
    np.random.seed(3)
    got = compiled(X)
    np.random.seed(3)
    assert torch.allclose(got, X + np.random.rand())
    assert "random numbers of NumPy" in gnnc.explain(compiled).fallbacks[0]
