"""Losses that are compiled with the model equal torch's, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import gnnc

from .function_checks import check, drawn

ROWS, CLASSES = 23, 5
REDUCTIONS = ("mean", "sum", "none")


def shares(*shape: int, seed: int = 1) -> Tensor:
    """Numbers between 0 and 1."""
    return drawn(*shape, seed=seed).detach().sigmoid().requires_grad_()


def classes(ignored: int | None = None, rows: int = ROWS) -> Tensor:
    y = torch.randint(0, CLASSES, (rows,), generator=torch.Generator().manual_seed(2))
    if ignored is not None:
        y[::3] = ignored
    return y


# ---------------------------------------------------------------- classes


@pytest.mark.parametrize("ignored", [-100, 2])
def test_ignored_rows_count_nowhere(ignored: int) -> None:
    def losses(x: Tensor, y: Tensor, w: Tensor) -> list[Tensor]:
        logs, out = x.log_softmax(1), []
        for r in REDUCTIONS:
            out.append(F.cross_entropy(2 * x, y, ignore_index=ignored, reduction=r))
            out.append(F.cross_entropy(2 * x, y, w, ignore_index=ignored, reduction=r))
            out.append(F.nll_loss(logs, y, w, ignore_index=ignored, reduction=r))
        return out

    check(losses, drawn(ROWS, CLASSES), classes(ignored), shares(CLASSES).detach())


def test_ignored_rows_of_the_defaults() -> None:
    check(
        lambda x, y: [F.cross_entropy(2 * x, y), F.nll_loss(2 * x, y)],
        drawn(ROWS, CLASSES),
        classes(-100),
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_label_smoothing(weighted: bool) -> None:
    def losses(x: Tensor, y: Tensor, w: Tensor) -> list[Tensor]:
        w = w if weighted else None
        options = {"weight": w, "label_smoothing": 0.2}
        return [F.cross_entropy(2 * x, y, reduction=r, **options) for r in REDUCTIONS]

    check(losses, drawn(ROWS, CLASSES), classes(-100), shares(CLASSES).detach())


def test_probabilities() -> None:
    def losses(x: Tensor, p: Tensor, w: Tensor) -> list[Tensor]:
        plain = [F.cross_entropy(2 * x, p, reduction=r) for r in REDUCTIONS]
        smooth = {"weight": w, "label_smoothing": 0.2}
        return plain + [F.cross_entropy(2 * x, p, reduction=r, **smooth) for r in REDUCTIONS]

    check(losses, drawn(ROWS, CLASSES), shares(ROWS, CLASSES), shares(CLASSES).detach())


def test_modules_of_torch() -> None:
    weight = shares(CLASSES).detach()
    modules = [
        torch.nn.CrossEntropyLoss(weight, ignore_index=1, label_smoothing=0.1),
        torch.nn.NLLLoss(reduction="sum"),
    ]
    check(lambda x, y: [m(2 * x, y) for m in modules], drawn(ROWS, CLASSES), classes())


def test_no_row_counts() -> None:
    """The mean of nothing is not a number; its gradient is 0, as torch's."""
    compiled = gnnc.compile(lambda x, y: F.cross_entropy(2 * x, y))
    for y in (torch.full((ROWS,), -100), classes(rows=0)):
        x = drawn(len(y), CLASSES)
        loss = compiled(x, y)
        loss.backward()
        assert torch.isnan(loss) and torch.isnan(F.cross_entropy(x, y))
        assert x.grad is not None and not x.grad.any()


def test_rows_of_a_mask() -> None:
    """The mask chooses which targets count, and which have to be classes."""

    def losses(x: Tensor, y: Tensor, mask: Tensor) -> list[Tensor]:
        return [F.cross_entropy((2 * x)[mask], y[mask])]

    mask = torch.arange(ROWS) % 2 == 0
    y = classes(-100)
    y[1] = CLASSES
    check(losses, drawn(ROWS, CLASSES), y, mask)
    mask[1] = True
    with pytest.raises(IndexError, match=f"is {CLASSES}, but it must be between 0 and 4"):
        gnnc.compile(losses)(drawn(ROWS, CLASSES), y, mask)


# ---------------------------------------------------------------- targets that are no classes


@pytest.mark.parametrize("bad", [CLASSES, -1, -CLASSES])
def test_a_target_that_is_no_class_raises(bad: int) -> None:
    compiled = gnnc.compile(lambda x, y: F.cross_entropy(2 * x, y))
    x, y = drawn(ROWS, CLASSES), classes(-100)
    loss = compiled(x, y)
    assert torch.allclose(loss, F.cross_entropy(2 * x, y))
    y[4] = bad  # in place: the tensor is the same, its content is looked at again
    with pytest.raises(IndexError):
        F.cross_entropy(x, y)
    with pytest.raises(IndexError, match=rf"y\[4\] is {bad}, but it must be between 0 and 4"):
        compiled(x, y)
    y[4] = -100
    assert torch.isfinite(compiled(x, y))
    assert gnnc.explain(compiled).graphs == 1


def test_gather_and_one_hot_want_numbers_of_columns() -> None:
    def chosen(x: Tensor, y: Tensor) -> Tensor:
        return (2 * x).gather(1, y.unsqueeze(1)) @ x.sum(0, keepdim=True)

    def hot(x: Tensor, y: Tensor) -> Tensor:
        return (x @ x.sum(0)) * F.one_hot(y, CLASSES).to(x.dtype)[:, 0]

    for f in (chosen, hot):
        compiled, x, y = gnnc.compile(f), drawn(ROWS, CLASSES), classes()
        assert torch.allclose(compiled(x, y), f(x, y))
        assert gnnc.explain(compiled).fallbacks == []
        y[4] = CLASSES
        with pytest.raises(RuntimeError, match=rf"y\[4\] is {CLASSES}"):
            compiled(x, y)


# ---------------------------------------------------------------- several places a row


def test_classes_of_several_places() -> None:
    def losses(x: Tensor, y: Tensor, z: Tensor, p: Tensor, w: Tensor) -> list[Tensor]:
        x, y = (2 * x).view(-1, CLASSES, 3), torch.stack([y, z, y], 1)
        out = [F.cross_entropy(x, p.view(-1, CLASSES, 3), w)]
        for r in REDUCTIONS:
            out += [F.cross_entropy(x, y, w, ignore_index=2, reduction=r, label_smoothing=0.1)]
            out += [F.nll_loss(x.log_softmax(1), y, reduction=r)]
        return out

    y, z = classes(), classes(2)
    args = shares(ROWS, 3 * CLASSES), shares(CLASSES).detach()
    check(losses, drawn(ROWS, 3 * CLASSES), y, z, *args)
    z[4] = CLASSES
    with pytest.raises(IndexError, match=f"is {CLASSES}, but it must be between 0 and 4"):
        gnnc.compile(losses)(drawn(ROWS, 3 * CLASSES), y, z, *args)


# ---------------------------------------------------------------- numbers


def test_differences() -> None:
    def losses(x: Tensor, t: Tensor) -> list[Tensor]:
        out = []
        for r in REDUCTIONS:
            out += [F.mse_loss(2 * x, t, reduction=r), F.l1_loss(2 * x, t, reduction=r)]
            out += [F.smooth_l1_loss(2 * x, t, reduction=r, beta=b) for b in (1.0, 0.3, 0.0)]
            out += [F.huber_loss(2 * x, t, reduction=r, delta=d) for d in (1.0, 0.3)]
        return out

    x, t = drawn(ROWS, 3), drawn(ROWS, 3, seed=4)
    with torch.no_grad():
        t[0], t[1] = 2 * x[0], 2 * x[1] + 1.0  # where the pieces meet
    check(losses, x, t)


def test_ranks() -> None:
    def losses(a: Tensor, b: Tensor, t: Tensor) -> list[Tensor]:
        loss = F.margin_ranking_loss
        return [loss(2 * a, b, t, margin=m, reduction=r) for r in REDUCTIONS for m in (0.0, 0.7)]

    a, b, t = drawn(ROWS), drawn(ROWS, seed=4), drawn(ROWS, seed=5).detach().sign()
    with torch.no_grad():
        a[0], b[0], a[1], b[1], t[1] = 0.0, 0.0, 0.0, -0.7, 1.0  # at the margin
    check(losses, a, b, t)


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
def test_divergence() -> None:
    def losses(x: Tensor, t: Tensor) -> list[Tensor]:
        out = []
        for r in (*REDUCTIONS, "batchmean"):
            out.append(F.kl_div((2 * x).log_softmax(1), t, reduction=r))
            out.append(F.kl_div(2 * x, t.log_softmax(1), reduction=r, log_target=True))
        return out

    x, t = drawn(ROWS, CLASSES), shares(ROWS, CLASSES)
    check(losses, x, t)
    with torch.no_grad():
        t[0] = 0.0
    check(losses, x, t.detach())  # torch's gradient of a target of 0 is infinite


def test_two_classes_by_logits() -> None:
    def losses(x: Tensor, t: Tensor, w: Tensor, p: Tensor) -> list[Tensor]:
        options: list[dict[str, Any]] = [{}, {"weight": w}, {"pos_weight": p}]
        options.append({"weight": w, "pos_weight": p})
        loss = F.binary_cross_entropy_with_logits
        return [loss(2 * x, t, reduction=r, **o) for r in REDUCTIONS for o in options]

    x = drawn(ROWS, CLASSES)
    with torch.no_grad():
        x[0], x[1] = 500.0, -500.0
    weights = shares(ROWS, CLASSES, seed=3).detach(), 3 * shares(CLASSES, seed=4).detach()
    check(losses, x, shares(ROWS, CLASSES), *weights)


def test_two_classes_by_probability() -> None:
    def losses(x: Tensor, t: Tensor, w: Tensor) -> list[Tensor]:
        plain = [F.binary_cross_entropy(1 - x, t, reduction=r) for r in REDUCTIONS]
        return plain + [F.binary_cross_entropy(1 - x, t, w, reduction=r) for r in REDUCTIONS]

    x, t = shares(ROWS, CLASSES), shares(ROWS, CLASSES, seed=5)
    weight = shares(ROWS, CLASSES, seed=3).detach()
    check(losses, x, t, weight)
    with torch.no_grad():
        x[0], x[1], t[0, :2], t[1, :2] = 0.0, 1.0, 0.0, 1.0
    check(losses, x, t.detach(), weight)  # torch's gradient of t would be infinite


# ---------------------------------------------------------------- left to torch


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda x, y: F.cross_entropy(x.mT, y[:CLASSES] % ROWS), "not over rows"),
        (lambda x, y: F.multi_margin_loss(x, y), "no rule"),
    ],
)
def test_other_losses_run_in_torch(loss: Callable[..., Tensor], words: str) -> None:
    f = lambda x, y: loss(2 * x @ x.sum(0, keepdim=True).T * x, y)  # noqa: E731
    compiled = gnnc.compile(f)
    x, y = drawn(ROWS, CLASSES), classes()
    assert torch.allclose(compiled(x, y), f(x, y))
    assert any(words in message for message in gnnc.explain(compiled).fallbacks)


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss])
def test_differences_with_weights(loss: Callable[..., Tensor]) -> None:
    check(
        lambda x, t, w: [loss(2 * x, t, weight=w, reduction=r) for r in REDUCTIONS],
        drawn(ROWS, 3),
        drawn(ROWS, 3, seed=4),
        shares(ROWS, 3),
    )


# ---------------------------------------------------------------- signs and distances


def signs(*shape: int) -> Tensor:
    return drawn(*shape, seed=5).detach().sign()


def test_signs() -> None:
    def losses(x: Tensor, t: Tensor) -> list[Tensor]:
        out = []
        for r in REDUCTIONS:
            out.append(F.soft_margin_loss(2 * x, t, reduction=r))
            out += [F.hinge_embedding_loss(2 * x, t, margin=m, reduction=r) for m in (1.0, 0.3)]
            out.append(F.multilabel_soft_margin_loss(2 * x, (t + 1) / 2, reduction=r))
        return out

    x, t = drawn(ROWS, CLASSES), signs(ROWS, CLASSES)
    with torch.no_grad():
        x[0], x[1], t[2] = 0.5, 0.15, 0.0  # at both margins, and a sign that is none
    check(losses, x, t)


def test_distances() -> None:
    def losses(a: Tensor, b: Tensor, o: Tensor, t: Tensor) -> list[Tensor]:
        out = []
        for r in REDUCTIONS:
            out.append(F.cosine_embedding_loss(2 * a, b, t, margin=0.1, reduction=r))
            for p in (1.0, 2.0, 3.0):
                out.append(F.triplet_margin_loss(2 * a, b, o, p=p, reduction=r))
            out.append(F.triplet_margin_loss(2 * a, b, o, margin=0.5, swap=True, reduction=r))
        out += [F.pairwise_distance(2 * a, b, p=p, keepdim=p > 1) for p in (1.0, 2.5, torch.inf)]
        return out

    a, b, o = (drawn(ROWS, CLASSES, seed=k) for k in range(3))
    with torch.no_grad():
        b[0], o[0] = 2 * a[0], 2 * a[0]
    check(losses, a, b, o, signs(ROWS))


def test_distributions() -> None:
    def losses(x: Tensor, t: Tensor) -> list[Tensor]:
        out = []
        for r in REDUCTIONS:
            out += [F.poisson_nll_loss(2 * x, t, full=f, reduction=r) for f in (False, True)]
            out.append(F.poisson_nll_loss(x.exp(), t, log_input=False, reduction=r))
        return out

    t = 3 * shares(ROWS, CLASSES)
    with torch.no_grad():
        t[0] = 1.0
    check(losses, drawn(ROWS, CLASSES), t)


@pytest.mark.parametrize("kinds", [(torch.float32, torch.float64), (torch.float64, torch.float32)])
def test_a_loss_of_another_type_than_what_it_is_of(kinds: tuple[torch.dtype, torch.dtype]) -> None:
    own, other = kinds

    def loss(x: Tensor) -> list[Tensor]:
        return [x.tanh().sum().to(other) * 3]

    check(loss, drawn(ROWS).detach().to(own).requires_grad_(), relative=1e-5)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, y, t: [torch.triplet_margin_loss(x, y, x * t)],
        lambda x, y, t: [torch.kl_div(x, y)],
        lambda x, y, t: [torch.binary_cross_entropy_with_logits(x, t, reduction=1)],
    ],
)
def test_torchs_own_functions_reduce_nothing_by_default(loss: Callable[..., list[Tensor]]) -> None:
    """Their parser reads the name of a mean as 0."""
    check(loss, drawn(ROWS, CLASSES), drawn(ROWS, CLASSES, seed=3), shares(ROWS, CLASSES).detach())
