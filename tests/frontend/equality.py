"""Is a compiled model interchangeable with the model it was made from? One comparison for all
tests.

Outputs and gradients are compared with a float64 run of the same model. An error as large as twice
torch's own in the same precision is allowed, measured against the largest number of the value and,
for gradients, the norm of its layer's weight gradients: the true gradient of a bias in front of a
BatchNorm is 0, and what float32 makes of it is noise of the size of the weights' gradient.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

EXACT = {torch.float32: 1e-5, torch.float64: 1e-12}
"""Relative error that always passes."""

KINK = {torch.float32: 1e-5, torch.float64: 1e-13}
"""A pre-activation this close to a kink, relative to the largest, may fall on either side."""


# ---------------------------------------------------------------- graphs


@dataclass(frozen=True)
class Edges:
    """A directed multigraph from `sources` to `targets` nodes (the same number unless
    bipartite).
    """

    sources: int
    targets: int
    index: Tensor

    @property
    def count(self) -> int:
        return self.index.shape[1]


def random_edges(seed: int, sources: int, targets: int, count: int, shape: str) -> Edges:
    """`shape`: uniform, hub (half of the edges end at one node), parallel (few distinct edges),
    loops, isolated (three quarters of the nodes have no edge)."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, sources, count), rng.integers(0, targets, count)
    if shape == "hub":
        dst[: count // 2] = targets - 1
    if shape == "parallel":
        distinct = rng.integers(0, count, count) % 3
        src, dst = src[distinct], dst[distinct]
    if shape == "loops":
        dst = np.where(rng.random(count) < 0.5, src % targets, dst)
    if shape == "isolated":
        src, dst = src % max(1, sources // 4), dst % max(1, targets // 4)
    order = rng.permutation(count)
    return Edges(sources, targets, torch.from_numpy(np.stack([src[order], dst[order]])))


FIXED = (
    random_edges(1, 17, 17, 60, "uniform"),
    random_edges(2, 40, 40, 120, "hub"),
    random_edges(3, 7, 7, 30, "parallel"),
    random_edges(4, 9, 9, 25, "loops"),
    random_edges(5, 30, 30, 20, "isolated"),
    random_edges(6, 1, 1, 5, "loops"),
    random_edges(7, 1, 1, 0, "uniform"),
    random_edges(8, 6, 6, 0, "uniform"),
)
"""Graphs that every layer meets."""


@st.composite
def graphs(draw: st.DrawFn, bipartite: bool = False) -> Edges:
    sources = draw(st.sampled_from([1, 2, 5, 17, 40]))
    targets = draw(st.sampled_from([1, 3, 12])) if bipartite else sources
    count = draw(st.sampled_from([0, 1, 2, 7, 33, 120]))
    shape = draw(st.sampled_from(["uniform", "hub", "parallel", "loops", "isolated"]))
    return random_edges(draw(st.integers(0, 2**16)), sources, targets, count, shape)


# ---------------------------------------------------------------- runs


class Kinks(TorchFunctionMode):
    """Notices pre-activations so close to a kink that rounding decides on which side they are."""

    def __init__(self, within: float) -> None:
        self.within = within
        self.close = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("relu", "relu_", "leaky_relu", "leaky_relu_", "clamp") and args[0].numel():
            size = args[0].detach().abs()
            near = (size > 0) & (size < self.within * float(size.max()))
            self.close = self.close or bool(near.any())
        return func(*args, **(kwargs or {}))


@dataclass
class Run:
    """What one call gave: outputs, gradients and buffers, by name."""

    outputs: dict[str, Tensor]
    gradients: dict[str, Tensor]
    buffers: dict[str, Tensor]


def leaves(tree: Any) -> list[Tensor]:
    return [x for x in torch.utils._pytree.tree_leaves(tree) if isinstance(x, Tensor)]


def run(model: Callable[..., Any], args: Sequence[Any], seed: int, backward: bool = True) -> Run:
    """Call a model on leaves of its own and differentiate a random combination of the outputs."""

    def fresh(x: Any) -> Any:
        if isinstance(x, Tensor) and x.is_floating_point():
            return x.detach().clone().requires_grad_(x.requires_grad)
        return x

    mine = torch.utils._pytree.tree_map(fresh, tuple(args))
    module = model if isinstance(model, nn.Module) else nn.Module()
    module.zero_grad(set_to_none=True)
    outputs = leaves(model(*mine))
    gradients: dict[str, Tensor] = {}
    if backward:
        generator = torch.Generator().manual_seed(seed)
        cotangents = [
            torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.dtype)
            for y in outputs
        ]
        pairs = [(y, d) for y, d in zip(outputs, cotangents, strict=True) if y.requires_grad]
        if pairs:
            torch.autograd.backward(*zip(*pairs, strict=True))
        named = {f"argument {k}": x for k, x in enumerate(leaves(mine)) if x.requires_grad}
        named |= {k: p for k, p in module.named_parameters() if p.requires_grad}
        for k, x in named.items():
            gradients[k] = torch.zeros_like(x) if x.grad is None else x.grad.clone()
    by_number = {f"output {k}": y.detach().clone() for k, y in enumerate(outputs)}
    return Run(by_number, gradients, {k: b.clone() for k, b in module.named_buffers()})


def as_double(args: Sequence[Any]) -> tuple[Any, ...]:
    def double(x: Any) -> Any:
        if isinstance(x, Tensor) and x.is_floating_point():
            return x.detach().double().requires_grad_(x.requires_grad)
        return x

    return torch.utils._pytree.tree_map(double, tuple(args))


# ---------------------------------------------------------------- comparison


def largest(x: Tensor) -> float:
    return float(x.abs().max()) if x.numel() else 0.0


def layer_of(name: str) -> str:
    """`convs.0` of `convs.0.lin.weight`, `conv` of `conv.bias`."""
    parts = name.split(".")
    return ".".join(parts[: 2 if parts[1:] and parts[1].isdigit() else 1])


def compare(
    got: Mapping[str, Tensor],
    own: Mapping[str, Tensor],
    exact: Mapping[str, Tensor],
    scale: Callable[[str], float],
) -> None:
    """`got` may be off from `exact` by the tolerance, or twice as far as torch's `own` values."""
    assert got.keys() == own.keys() == exact.keys()
    for name, y in got.items():
        z, t = exact[name], own[name]
        assert y.shape == t.shape, f"{name}: shape {tuple(y.shape)}, torch has {tuple(t.shape)}"
        assert y.dtype == t.dtype, f"{name}: {y.dtype}, torch has {t.dtype}"
        if not y.is_floating_point():
            assert torch.equal(y, t), name
            continue
        assert bool(torch.isfinite(y).all() | ~torch.isfinite(t).all()), f"{name} is not finite"
        size = scale(name) or 1.0
        error, torch_error = largest(y.double() - z) / size, largest(t.double() - z) / size
        limit = max(EXACT.get(y.dtype, 0.0), 2 * torch_error)
        assert error <= limit, f"{name}: relative error {error:.3g}, allowed {limit:.3g}"


def assert_interchangeable(
    eager: nn.Module,
    compiled: nn.Module,
    args: Sequence[Any],
    seed: int = 0,
    backward: bool = True,
    together: bool = False,
) -> bool:
    """Compare one call of both with a float64 run. False, having compared only the outputs, where
    a kink makes gradients a matter of luck. `together` measures errors against the largest of all
    outputs or gradients, for models where parts of these are 0 but for rounding. Both modules
    begin with the buffers of `eager`, and theirs advance."""
    # the reference starts from the running statistics of `eager`, and so must `compiled`: what the
    # two have rounded apart in earlier calls was within the tolerance of what they were then
    ours = dict(compiled.named_buffers())
    with torch.no_grad():
        for name, buffer in eager.named_buffers():
            ours[name].copy_(buffer)
    reference = copy.deepcopy(eager).double()
    numbers = [x for x in (*leaves(args), *eager.parameters()) if x.is_floating_point()]
    kinks = Kinks(KINK[numbers[0].dtype])
    with kinks:
        exact = run(reference, as_double(args), seed, backward)
    own = run(eager, args, seed, backward)
    got = run(compiled, args, seed, backward)

    # a single number that a hundred terms cancel to has no relative accuracy in any order of the
    # sum: errors of outputs count against a tenth of the largest input at least
    terms = 0.1 * max(
        (largest(x.detach()) for x in leaves(args) if x.is_floating_point()), default=0.0
    )

    def size(name: str) -> float:
        names = exact.outputs if together else (name,)
        return max(terms, *(largest(exact.outputs[k]) for k in names))

    compare(got.outputs, own.outputs, exact.outputs, size)
    compare(got.buffers, own.buffers, exact.buffers, lambda k: largest(exact.buffers[k]))
    if kinks.close:
        return False

    def scale(name: str) -> float:
        whole = together or "." not in name  # a lone parameter may stand in front of any layer
        pairs = exact.gradients.items()
        mine = [g for k, g in pairs if whole or layer_of(k) == layer_of(name)]
        return max((g.norm().item() for g in mine), default=0.0)

    compare(got.gradients, own.gradients, exact.gradients, scale)
    return True
