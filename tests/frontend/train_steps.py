"""A model, its twin, and a step of training of each: of torch, and of `gnnc.train_step`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop
from torch_geometric.nn import SAGEConv

import gnnc

N, E, WIDTH, CLASSES = 60, 300, 6, 4

MakeOptimizer = Callable[[Any], Optimizer]

OPTIMIZERS: dict[str, MakeOptimizer] = {
    "adam": lambda p: Adam(p, lr=0.01),
    "adam-decay": lambda p: Adam(p, lr=0.01, weight_decay=0.1, betas=(0.8, 0.9), eps=1e-4),
    "amsgrad": lambda p: Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: AdamW(p, lr=0.01, weight_decay=0.1),
    "adamw-amsgrad": lambda p: AdamW(p, lr=0.01, amsgrad=True),
    "adam-fused": lambda p: Adam(p, lr=0.01, fused=True),
    "sgd": lambda p: SGD(p, lr=0.1),
    "sgd-decay": lambda p: SGD(p, lr=0.1, weight_decay=0.1),
    "momentum": lambda p: SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "nesterov": lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adagrad": lambda p: Adagrad(
        p, lr=0.1, lr_decay=0.1, weight_decay=0.01, initial_accumulator_value=0.1, eps=1e-4
    ),
    "rmsprop": lambda p: RMSprop(p, lr=0.01, alpha=0.9, eps=1e-4, weight_decay=0.01),
    "rmsprop-momentum": lambda p: RMSprop(p, lr=0.01, momentum=0.9),
    "rmsprop-centered": lambda p: RMSprop(p, lr=0.01, centered=True, eps=1e-4),
    "rmsprop-all": lambda p: RMSprop(
        p, lr=0.001, momentum=0.5, centered=True, weight_decay=0.1, maximize=True, eps=1e-2
    ),
}

MAXIMISERS: dict[str, MakeOptimizer] = {
    "adam": lambda p: Adam(p, lr=0.01, weight_decay=0.1, maximize=True),
    "adamw": lambda p: AdamW(p, lr=0.01, maximize=True, amsgrad=True),
    "sgd": lambda p: SGD(p, lr=0.01, weight_decay=0.1, maximize=True),
    "nesterov": lambda p: SGD(p, lr=0.01, momentum=0.9, nesterov=True, maximize=True),
    "adagrad": lambda p: Adagrad(p, lr=0.01, weight_decay=0.1, maximize=True),
}


class Net(nn.Module):
    """Two layers, with batch normalisation between them where wanted."""

    def __init__(self, first: nn.Module, second: nn.Module, norm: bool = False) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        return self.second(torch.tanh(self.norm(self.first(x, *edges))), *edges)


def sage(norm: bool = False) -> Net:
    return Net(SAGEConv(WIDTH, 8, bias=not norm), SAGEConv(8, CLASSES), norm)


def data(seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(N, WIDTH, generator=g, dtype=torch.float64).to(dtype)
    return (
        x,
        torch.randint(0, N, (2, E), generator=g),
        torch.randint(0, CLASSES, (N,), generator=g),
    )


def loss_of(model: nn.Module) -> Callable[..., Tensor]:
    return lambda x, *rest: F.cross_entropy(model(x, *rest[:-1]), rest[-1])


def plain_step(model: nn.Module, optimizer: Optimizer, *args: Tensor) -> Tensor:
    return train_any(loss_of(model), optimizer, *args).detach()


def train_any(loss: Callable[..., Any], optimizer: Optimizer, *args: Tensor) -> Any:
    """A step of torch's with a loss of its own; what that returned."""
    optimizer.zero_grad()
    out = loss(*args)
    (out if isinstance(out, Tensor) else out[0]).backward()
    optimizer.step()
    return out


def clip_in_torch(
    optimizer: Optimizer,
    clip_grad_norm: float | None = None,
    clip_grad_value: float | None = None,
    norm_type: Any = 2.0,
) -> None:
    """What the arguments of `train_step` of these names ask for."""
    parameters = [p for g in optimizer.param_groups for p in g["params"]]
    if clip_grad_value is not None:
        nn.utils.clip_grad_value_(parameters, clip_grad_value)
    if clip_grad_norm is not None:
        nn.utils.clip_grad_norm_(parameters, clip_grad_norm, norm_type)


def train_both(count: int, a: nn.Module, o: Optimizer, step: Any, *args: Tensor) -> None:
    """So many steps of torch's and of ours, in turns."""
    for _ in range(count):
        plain_step(a, o, *args)
        step(*args)


def assert_same(a: nn.Module, b: nn.Module, tolerance: float = 1e-5) -> None:
    for (name, p), q in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        torch.testing.assert_close(
            p, q, atol=tolerance, rtol=tolerance, msg=lambda m: f"{name}: {m}"
        )


def assert_same_state(a: Optimizer, b: Optimizer, tolerance: float | None = None) -> None:
    """What a checkpoint would hold."""
    x, y = a.state_dict(), b.state_dict()
    assert x["param_groups"] == y["param_groups"]
    assert list(x["state"]) == list(y["state"])
    for k, state in x["state"].items():
        assert state.keys() == y["state"][k].keys()
        for name, value in state.items():
            atol, rtol = (1e-5, 1e-4) if tolerance is None else (tolerance, tolerance)
            torch.testing.assert_close(value, y["state"][k][name], atol=atol, rtol=rtol)


def in_one_program(step: Any) -> bool:
    return gnnc.explain(step).graphs == 1 and not gnnc.explain(step).fallbacks


def fallbacks(step: Any) -> str:
    """The messages of what was left to torch."""
    return "\n".join(gnnc.explain(step).fallbacks)


def twins(
    make: Callable[[], nn.Module], optimizer: MakeOptimizer, seed: int = 0
) -> tuple[nn.Module, Optimizer, nn.Module, Optimizer, Any]:
    a, o, b, p = twins_of(make, optimizer, seed)
    return a, o, b, p, gnnc.train_step(loss_of(b), p)


def twins_of(
    make: Callable[[], nn.Module], optimizer: MakeOptimizer, seed: int = 0
) -> tuple[nn.Module, Optimizer, nn.Module, Optimizer]:
    torch.manual_seed(seed)
    a = make()
    b = copy.deepcopy(a)
    return a, optimizer(a.parameters()), b, optimizer(b.parameters())
