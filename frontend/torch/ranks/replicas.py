"""Ranks that train the same parameters, each on a batch of its own: what they do in torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

from ....runtime.carrier import Carrier
from ....runtime.ranks.communicator import Communicator
from ....runtime.ranks.exchanges import exchanges
from ..returned import with_loss


def summed(x: Tensor, communicator: Communicator) -> Tensor:
    """The sum over the ranks of a tensor that has the same shape and dtype in all, in the order of
    ranks: the same numbers on each. A new tensor without gradient.

    Raises:
        TypeError: it holds neither integers nor floats.
    """
    given = x.detach().contiguous()
    if communicator.size == 1:
        return given.clone()
    # NumPy has no floats of 16 bits with the exponents of 32
    given, back = (given.float(), x.dtype) if x.dtype == torch.bfloat16 else (given, None)
    found = torch.from_numpy(communicator.all_reduce(given.cpu().numpy(), "sum"))
    return found.to(device=x.device, dtype=back)


def sum_gradients(parameters: Iterable[Tensor], communicator: Communicator) -> None:
    """Replaces each gradient by its sum over the ranks. A parameter that no rank has a gradient for
    keeps none."""
    if communicator.size == 1:
        return
    wanted = [p for p in parameters if p.requires_grad]
    there = torch.tensor([p.grad is not None for p in wanted], dtype=torch.int32)
    found = [p for p, n in zip(wanted, summed(there, communicator).tolist(), strict=True) if n]
    for dtype in sorted({p.dtype for p in found}, key=str):
        _sum([p for p in found if p.dtype == dtype], communicator)


def _sum(parameters: Sequence[Tensor], communicator: Communicator) -> None:
    """One message for all, of one dtype."""
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = summed(torch.cat([g.detach().reshape(-1) for g in grads]), communicator)
    parts = flat.split([g.numel() for g in grads])
    with torch.no_grad():
        for parameter, grad, part in zip(parameters, grads, parts, strict=True):
            grad.copy_(part.view_as(grad))
            parameter.grad = grad


def make_same(tensors: Iterable[Tensor], communicator: Communicator) -> None:
    """Gives all ranks the numbers of rank 0."""
    if communicator.size == 1:
        return
    mine = [x.detach() for x in tensors]
    with torch.no_grad():
        for x, y in zip(mine, communicator.broadcast(mine), strict=True):
            x.copy_(y)


def check_same(optimizer: Optimizer, communicator: Communicator) -> None:
    """
    Raises:
        Disagreement: ranks have other parameters than rank 0, another optimizer, or one with
            another state, and would never have the same parameters.
    """
    digest = hashlib.sha256(type(optimizer).__name__.encode())
    for group in optimizer.param_groups:
        _add(digest, {k: v for k, v in group.items() if k != "params"})
        for p in group["params"]:
            _add(digest, (p, optimizer.state.get(p, {})))
    what = "the parameters that they train, or what their optimizers keep of these"
    communicator.agree(what, digest.hexdigest())


def _add(digest: Any, value: Any) -> None:
    for part in _leaves(value):
        if isinstance(part, Tensor):
            x = part.detach().cpu().contiguous().reshape(-1)
            digest.update(f"{part.dtype}{list(part.shape)}".encode())
            digest.update(x.view(torch.uint8).numpy())
        else:
            digest.update(repr(part).encode())


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield key
            yield from _leaves(value[key])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


class Trainers(Protocol):
    """Who trains the same parameters, as a step of training sees them."""

    @property
    def carrier(self) -> Carrier | None:
        """Of what programs add up over ranks; None for one rank."""

    def begin(self) -> None:
        """A call.

        Raises:
            Disagreement: at the first one, what is trained is not the same on all ranks.
        """

    def with_sum(self, out: Any, loss: Tensor) -> Any:
        """What a call returned, `loss` in it, with the loss of all ranks together."""

    def sum_gradients(self) -> None:
        """Replaces the gradients of all that the optimizer updates by sums over ranks."""


def trainers(communicator: Communicator | None, optimizer: Optimizer) -> Trainers:
    """This process and those that it talks to."""
    if communicator is None or communicator.size == 1:
        return OneTrainer()
    return Replicas(communicator, optimizer)


class OneTrainer:
    """This process alone: all sums are there."""

    carrier: None = None

    def begin(self) -> None:
        """See `Trainers`."""

    def with_sum(self, out: Any, loss: Tensor) -> Any:
        """See `Trainers`."""
        return out

    def sum_gradients(self) -> None:
        """See `Trainers`."""


class Replicas:
    """Ranks that have a batch each."""

    def __init__(self, communicator: Communicator, optimizer: Optimizer) -> None:
        self._communicator, self._optimizer = communicator, optimizer
        self._checked = False
        self.carrier: Carrier = exchanges(communicator, {})

    def begin(self) -> None:
        """See `Trainers`, and `check_same`."""
        if not self._checked:
            check_same(self._optimizer, self._communicator)
            self._checked = True

    def with_sum(self, out: Any, loss: Tensor) -> Any:
        """See `Trainers`."""
        return with_loss(out, summed(loss, self._communicator))

    def sum_gradients(self) -> None:
        """See `Trainers`."""
        every = (p for group in self._optimizer.param_groups for p in group["params"])
        sum_gradients(every, self._communicator)
