"""Arguments of calls have torch's meaning in every form, or send the call to torch: each function
is imported and interpreted, and compared with what it gives in torch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, fx  # noqa: E402

from gnnc.frontend.torch.capture.capture import dynamo_compile  # noqa: E402
from gnnc.frontend.torch.importer import Unsupported, import_graph  # noqa: E402
from gnnc.frontend.torch.importer.calls.schemas import plain_name  # noqa: E402
from gnnc.frontend.torch.importer.rules import RULES  # noqa: E402
from gnnc.tests.frontend.evaluate import evaluate  # noqa: E402

N = 6


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    torch._dynamo.reset()
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Numbers that float32 holds as well, which the interpreter does not round to."""
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return ((numbers * 64).round() / 64).double()


INPUTS = {
    "x": drawn(N, 3, seed=1),
    "y": drawn(N, 3, seed=2),
    "w": drawn(5, 3, seed=3),
    "v": drawn(3, 3, seed=4),
    "k": torch.tensor([[3, -2, 7], [1, 5, -8], [0, 2, 2], [9, 4, -1], [6, 6, 3], [-5, 1, 0]]),
    "i": torch.tensor([4, 0, 2, 2, 1, 0]),
    "c": torch.tensor([1, 0, 2, 2, 1, 0]),
    "m": torch.tensor([True, False, True, True, False, True]),
}
Function = Callable[..., Any]


def put(x: Tensor, index: Any, value: Any) -> Tensor:
    y = x + 1
    y[index] = value
    return y


def edited(x: Tensor, edit: Callable[[Tensor], Tensor]) -> Tensor:
    """A tensor that is read after an edit whose result nobody reads."""
    y = x + 0
    edit(y)
    return y * 1


def run(f: Function) -> Any:
    """A function of some of the inputs, by name, imported and interpreted."""

    def backend(gm: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        program = import_graph(gm)
        return lambda *args: evaluate(program, args)[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dynamo_compile(f, backend, fullgraph=True)(*arguments(f))


def arguments(f: Function) -> list[Tensor]:
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    return [INPUTS[name].clone() for name in names]


def eager(f: Function) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f(*arguments(f))


def assert_equal(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple | list):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_equal(a, b)
        return
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    exact = 1e-6 if wanted.dtype == torch.float32 else 1e-12
    assert torch.allclose(found, wanted, rtol=exact, atol=exact, equal_nan=True)


def source(f: Function) -> str:
    return f"line {f.__code__.co_firstlineno}"


COMPILED: list[Function] = [
    # NumPy's names
    lambda x, y: torch.cat([x, y], axis=1),
    lambda x, y: torch.concatenate((x, y), axis=-1),
    lambda x, y: torch.stack([x, y], axis=1),
    lambda x: torch.sum(x, axis=1, keepdims=True),
    lambda x: x.mean(axis=(0, 1)),
    lambda x: torch.max(x, axis=1, keepdims=True),
    lambda x: torch.softmax(x, axis=1),
    lambda x: torch.unsqueeze(x, axis=1),
    lambda x, y: torch.add(x1=x, x2=y),
    lambda x: torch.exp(x=x),
    lambda x: torch.swapaxes(x, axis0=0, axis1=-1),
    # scales, wherever they stand
    lambda x: torch.add(x, 2, x),
    lambda x, y: torch.add(x, y, alpha=3),
    lambda x, y: x.sub(y, alpha=0.5),
    lambda x, y: torch.subtract(other=y, input=x, alpha=2),
    lambda x, y: torch.rsub(x, y, alpha=2),
    lambda x: torch.rsub(x, 1.5, alpha=2),
    lambda k: torch.rsub(k, 2, 3),
    lambda k, x: torch.add(k, x, alpha=2),
    lambda x, y: (x * 1.0).sub_(y, alpha=2),
    lambda x, y, w: torch.addcmul(x, y, y, value=2),
    lambda x, y: x.addcmul(2, y, y),
    lambda x, v: torch.addmm(x, x, v, beta=0.5, alpha=2),
    lambda x, v: torch.addmm(0.5, x, 2, x, v),
    lambda x, v: x.addmm(x, v, alpha=-1),
    lambda x, y, i: torch.zeros(5, 3, dtype=x.dtype).index_add_(0, i, y, alpha=2),
    lambda x, y, i: torch.zeros_like(x).index_add(dim=0, index=i, source=y, alpha=-1),
    # Python's numbers on either side
    lambda x: 2 - x,
    lambda x: 2 / (x * x + 1),
    lambda x: 2.5**x,
    lambda k: k // 7,
    lambda k: k % 7,
    lambda x: torch.true_divide(x, 2),
    lambda x: torch.mul(2.5, x),
    lambda k: k / 2,
    lambda k: k**2.0,
    lambda k: k**1.0,
    lambda k: torch.pow(k, exponent=2),
    # two tensors or a dimension
    lambda x, y: torch.max(x, other=y),
    lambda x, y: x.max(y),
    lambda x, y: torch.min(input=x, other=y),
    lambda x: x.min(-1),
    lambda x: torch.max(x, 1, True),
    lambda x: x.argmax(dim=-1, keepdim=True),
    lambda x, y, m: x.where(m[:, None], y),
    lambda x, m: torch.where(m[:, None], 1.0, x),
    lambda x, m: torch.where(m[:, None], x, other=2),
    lambda m, c: torch.where(condition=m, input=c, other=-1),
    lambda x, y: torch.clamp(x, min=y),
    lambda x, y: x.clamp(max=y, min=-0.5 * y),
    lambda x, y: torch.clip(x, -0.5, 0.5),
    lambda x: x.clamp(None, 0.2),
    lambda k: k.clamp(min=0.5),
    lambda k, x: torch.clamp(k, min=x),
    # spreads
    lambda x: torch.std(x, False),
    lambda x: torch.var(x, 1, False, True),
    lambda x: x.std(0, unbiased=False, keepdim=True),
    lambda x: x.var(1, correction=0),
    lambda x: x.var(1, correction=2, keepdim=True),
    lambda x: torch.std(x, dim=(0, 1), correction=0),
    lambda x: x.std(unbiased=False),
    lambda v: v[:, :1].var(1, correction=2),
    # the type that is computed in
    lambda k: k.sum(1, dtype=torch.float64),
    lambda k: torch.mean(k, 1, dtype=torch.float64),
    lambda x: torch.softmax(x, 1, dtype=torch.float32),
    lambda k: F.softmax(k, dim=1, dtype=torch.float64),
    lambda k: F.log_softmax(k, -1, 3, torch.float64),
    lambda x: torch.sum(x, dtype=torch.float32),
    lambda x: torch.linalg.vector_norm(x.float(), dim=1, dtype=torch.float64),
    lambda x: torch.norm(x.float(), 2, 1, dtype=torch.float64),
    lambda x: torch.zeros_like(x, dtype=torch.int64) + 1,
    lambda x: x.new_full((3,), 2.7, dtype=torch.int64),
    lambda x: x.to(torch.float32, copy=True),
    lambda x, k: k.to(x),
    lambda x: x.to("cpu", torch.int64),
    lambda x: x.type(torch.float32),
    lambda x, k: k.type_as(x),
    lambda x: torch.full((3,), 1, dtype=x.dtype),
    lambda x: torch.arange(1, 9, 3, dtype=x.dtype),
    lambda x: torch.arange(end=4, start=1) * 1,
    # functions that are written in Python
    lambda x: F.leaky_relu(x, negative_slope=0.3),
    lambda x: F.elu(input=x, alpha=0.5),
    lambda x: F.gelu(x, approximate="tanh"),
    lambda x: F.softplus(x, 2, threshold=1),
    lambda x: F.normalize(x, 1, -1),
    lambda x: F.normalize(x, dim=0, p=2.0, eps=1e-3),
    lambda x: F.layer_norm(x, (3,), bias=x.sum(0), eps=0.1),
    lambda x: F.layer_norm(normalized_shape=[3], input=x, weight=x.sum(0)),
    lambda w, i: F.embedding(input=i, weight=w),
    lambda w, i: F.embedding(i, w, padding_idx=-1),
    lambda x: F.dropout(x, 0.5, False),
    lambda x: F.dropout(x, training=True, p=0.0),
    lambda x: F.dropout(x, 1.0),
    lambda x, y: F.mse_loss(x, y, reduction="sum"),
    lambda x, y: F.mse_loss(x, y, weight=y),
    lambda x, c: F.cross_entropy(x, c, label_smoothing=0.1, ignore_index=2),
    lambda x, c: F.nll_loss(F.log_softmax(x, 1), c, None, None, 2),
    lambda x, y: F.cosine_similarity(x2=y, x1=x, dim=-1),
    lambda x: F.one_hot(torch.arange(3), num_classes=4),
    lambda x, y: torch.cross(x, y, dim=1),
    lambda x, y: torch.linalg.cross(x, x.sum(0, keepdim=True)),
    # products
    lambda x, y: torch.einsum("nf,ng->fg", x, y),
    lambda x, v: torch.einsum("nf,fg->ng", [x, v]),
    lambda x, v: torch.einsum(x, [1, 0], v, [0, 2], [1, 2]),
    lambda x, v: torch.einsum(x, [3, 7], v, [7, 5]),
    lambda x: torch.einsum("nf->n", x),
    lambda x: torch.einsum("nf->fn", x).T,
    lambda x: torch.einsum("nf->", x) * torch.einsum("fn->n", x),
    lambda x: torch.einsum("nab->bn", x.view(-1, 1, x.size(1)).repeat(1, 2, 1)).T,
    lambda x, v: torch.mm(x, mat2=v),
    lambda x: torch.mv(x, vec=x.sum(0)),
    # shapes
    lambda x: x.permute(1, 0),
    lambda x: torch.permute(x, dims=(-1, 0)),
    lambda x: (x.t() @ x).view(9, 1).T,
    lambda x: (x.t() @ x).reshape(1, 3, 3).repeat(2, 1, 1).mT,
    lambda x: x.split(split_size=2, dim=-1),
    lambda x: torch.split(x, [1, 2], 1),
    lambda x: torch.chunk(x, 2, dim=1),
    lambda x: x.unbind(dim=-1),
    lambda x: torch.narrow(x, -1, 1, 2),
    lambda x: x.select(dim=-1, index=-1),
    lambda x: x.flip(-1),
    lambda x: torch.roll(x, shifts=1, dims=-1),
    lambda x: torch.roll(x, (1,), (1,)),
    lambda x: x.movedim(-1, 0),
    lambda x: torch.broadcast_to(x.sum(0), x.shape),
    lambda x: x.sum(0).expand(x.size()),
    # indices
    lambda x, i: torch.index_select(x, dim=0, index=i),
    lambda x, c: torch.gather(x, 1, index=c[:, None]),
    lambda x, c: torch.zeros_like(x).scatter_(1, c[:, None], 1.0),
    lambda x, c: torch.zeros_like(x).scatter(dim=1, index=c[:, None], src=x[:, :1]),
    lambda x, i: torch.zeros(5, 3, dtype=x.dtype).index_put_((i,), x, accumulate=True),
    lambda x, i: torch.zeros(5, 3, dtype=x.dtype).index_put((i,), x, True),
    lambda x, i: torch.zeros(5, 3, dtype=x.dtype).scatter_reduce(
        0, i[:, None].expand(-1, 3), x, "amax", include_self=False
    ),
    lambda x, m: torch.masked_fill(x, mask=m[:, None], value=0.5),
    lambda m: m.nonzero(as_tuple=True)[0],
    lambda m: torch.nonzero(m, as_tuple=False),
    lambda x, m: put(x, m, 7.0),
    lambda x, m: put(x, m, x.sum(0)),
    lambda x, m: put(x, m, x.sum(0)[None]),
    lambda x: put(x, (slice(None), slice(2, 1)), 1.0),
    lambda x: put(x, (slice(None), slice(-2, None)), 1.0),
    lambda x, y: torch.arctan2(x, other=y),
    lambda x: torch.special.erfinv(torch.tanh(x)),
    # edits, wherever they are asked for
    lambda x: edited(x, lambda y: F.relu(y, True)),
    lambda x: edited(x, lambda y: F.leaky_relu(y, 0.1, True)),
    lambda x: edited(x, lambda y: F.elu(y, inplace=True, alpha=2.0)),
    lambda x: edited(x, lambda y: F.dropout(y, 0.5, False, True)),
    lambda x: edited(x, F.relu_),
    lambda x: edited(x, lambda y: y.add_(2, alpha=3)),
    lambda x: edited(x, lambda y: y.clamp_(max=0.5)),
    # nothing to reduce, all to reduce
    lambda x: x.sum(()),
    lambda x: x.sum().sum(0),
    lambda x: x.amax(()),
    lambda x: x.sum(dim=None, keepdim=True),
    lambda x: torch.any(x > 3, dim=1, keepdim=True),
    lambda x: torch.logsumexp(x, (0, 1)),
    # integers and booleans where floats are usual
    lambda k: torch.floor(k),
    lambda k: torch.ceil(k),
    lambda k: torch.nan_to_num(k, 1.0),
    lambda k: torch.isinf(k),
    lambda m: torch.isfinite(m),
    lambda k: torch.logsumexp(k, 1),
    lambda k: torch.sigmoid(k),
    lambda k: torch.relu(k),
    lambda k: F.softsign(k),
    lambda m: m.sum(),
    lambda m: m + m,
    lambda k: torch.logical_and(k, k > 1),
    lambda m: m & True,
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("f", COMPILED, ids=source)
def test_arguments_mean_what_they_mean_in_torch(f: Function) -> None:
    assert_equal(run(f), eager(f))


_THIRD = float(INPUTS["x"].flatten().sort().values[-3])

REFUSED: list[tuple[Function, str]] = [
    (lambda x: torch.div(x, 2.5, rounding_mode="trunc"), "trunc"),
    (
        lambda x, i: torch.zeros_like(x).scatter_(1, i[:, None] % 3, 1.0, reduce="add"),
        "reduce='add'",
    ),
    (lambda w, i: F.embedding(i, w, sparse=True), "sparse=True"),
    (lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), "scale_grad_by_freq=True"),
    (lambda x, c: torch.gather(x, 1, c[:, None], sparse_grad=True), "sparse_grad=True"),
    (lambda x, y: F.mse_loss(x, y, size_average=True), "size_average=True"),
    (lambda x, c: F.cross_entropy(x, c, reduce=False), "reduce=False"),
    (lambda x: torch.argmax(x), "all dimensions"),
    (lambda x: x.view(torch.int64), "dtype="),
    (lambda m: m.amax(0), "booleans"),
    (lambda k: F.threshold(k, 1, 0), "integers"),
    (lambda x: F.cosine_similarity(x, x[:, :1], 1), "broadcast"),
    (lambda x, y: torch.cross(x, y), "whichever that is"),
    (lambda x: F.dropout1d(x, 0.5, True), "whole columns"),
    (lambda x: x.tile((0,)), "no times"),
    (lambda x: x.var(correction=-1), "a correction below 0"),
    (lambda x, i: torch.bincount(i, minlength=2), "minlength"),
    (lambda x: put(x, x >= _THIRD, x.sum(0)), "as many numbers as a mask chooses"),
    # an index that covers a part of the columns
    (lambda x, i: x.new_zeros(5, 4).scatter_add_(0, i[:, None], x[:, :1]), "part of the columns"),
    (lambda x, i: x.new_zeros(5, 3).scatter_reduce(0, i[:, None], x[:, :1], "sum"), "part of"),
    (lambda x, c: torch.stack([x, x], 1).gather(2, c[:, None, None]), "covers a part"),
    (lambda x, c: torch.stack([x, x], 1).scatter(2, c[:, None, None], 1.0), "covers a part"),
    (lambda x, c: torch.zeros_like(x).scatter(1, c[:, None], x), "another shape than the index"),
]


@pytest.mark.parametrize("f, words", REFUSED, ids=lambda p: source(p) if callable(p) else p)
def test_arguments_that_no_rule_handles_leave_a_call_to_torch(f: Function, words: str) -> None:
    eager(f)  # torch takes it
    with pytest.raises(Unsupported) as error:
        run(f)
    assert words in str(error.value)
    assert "bug in gnnc" not in str(error.value)


def test_an_argument_that_a_rule_has_not_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever rules there are: one that looks only at its tensor cannot ignore the others."""
    monkeypatch.setitem(RULES, "sum", lambda c: c.ctx.total("sum", c.x))
    assert_equal(run(lambda x: x.sum()), INPUTS["x"].sum())
    for f, words in (
        (lambda x: x.sum(0), "dim=0"),
        (lambda x: torch.sum(x, axis=1), "dim=1"),
        (lambda x: x.sum((), True), "dim="),
        (lambda x: x.sum(dtype=torch.float32), "dtype="),
    ):
        with pytest.raises(Unsupported, match="the argument " + words):
            run(f)


def test_rules_are_registered_under_names_that_calls_have() -> None:
    for op in RULES:
        assert op.startswith("gnnc.") or plain_name(op) == op
