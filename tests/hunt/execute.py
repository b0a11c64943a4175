"""Runs a program and notes all that a user could see of each call."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from .program import Call, Given, Loaded, Program, draw, given

Instance = nn.Module | Callable[..., Any]


@dataclass
class Observation:
    """What a call did.

    `raised`: the stage (call or backward) and the type, with the message apart. `values`: tensors
    by name (results, arguments, parameters and buffers after the call, gradients, None where there
    is none). `facts`: what has to be the same exactly.
    """

    raised: tuple[str, str] | None = None
    caught_as: list[str] = field(default_factory=list[str])
    """The names of the classes of what was raised."""
    message: str = ""
    line: int = 0
    """The line of the program that raised."""
    values: dict[str, Tensor | None] = field(default_factory=dict[str, Tensor | None])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    state: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Parameters and buffers before the call."""


class Runner:
    """Runs the calls of a program on one instance, one after the other."""

    def __init__(self, program: Program, instance: Instance, dtype: torch.dtype) -> None:
        self.program, self.instance, self.dtype = program, instance, dtype
        self.last: Given | None = None

    def run(self, number: int, state: dict[str, Tensor] | None = None) -> Observation:
        """Call `number`, which begins with the parameters and buffers of `state`."""
        seen = Observation()
        call = self.program.calls[number]
        module = self.instance if isinstance(self.instance, nn.Module) else nn.Module()
        if state is not None:
            synchronise(module, state)
        seen.state = {k: x.detach().clone() for k, x in named_state(module)}
        module.train(call.train)
        module.zero_grad(set_to_none=True)
        mine = self.arguments(call, number)
        change(module, call)
        torch.manual_seed(number)
        stage = "call"
        try:
            with warnings.catch_warnings(), grad_mode(call.grad):
                warnings.simplefilter("ignore")
                out = self.instance(*mine.values.values())
            stage = "look"
            results = look(seen, out, mine, module)
            stage = "backward"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                follow(seen, call, results, mine, module, number)
            stage = "after"
            for name, x in mine.values.items():
                if isinstance(x, Tensor):
                    seen.values[f"argument {name}"] = x.detach().clone()
                    seen.facts[f"argument {name} requires_grad"] = x.requires_grad
            for name, x in named_state(module):
                seen.values[name] = x.detach().clone()
        except Exception as error:
            seen.raised = (stage, type(error).__name__)
            seen.caught_as = [kind.__name__ for kind in type(error).__mro__]
            seen.message = str(error)
            seen.line = line_of(error)
        return seen

    def arguments(self, call: Call, number: int) -> Given:
        generator = torch.Generator().manual_seed(self.program.seed * 1000 + number)
        values = self.program.settings.get("values", "normal")
        bases = {
            k: draw(a, call.sizes, generator, values) for k, a in self.program.arguments.items()
        }
        if call.before in ("again", "data", "edit") and self.last is not None:
            for x in self.last.leaves.values():
                x.grad = None
            edges = self.last.values.get("e")
            if isinstance(edges, Tensor) and call.before == "data":
                edges.data = bases["e"]
            if isinstance(edges, Tensor) and call.before == "edit":
                edges.copy_(bases["e"])
            return self.last
        self.last = given(self.program, bases, self.dtype)
        return self.last


def line_of(error: Exception) -> int:
    """The line of the program's own that an error came from."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in reversed(frames) if f.filename.startswith("<program")), 0)


def named_state(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, p in module.named_parameters():
        yield f"parameter {name}", p
    for name, b in module.named_buffers():
        yield f"buffer {name}", b


def synchronise(module: nn.Module, state: dict[str, Tensor]) -> None:
    """Give parameters and buffers these numbers, where they have others: what two runs have rounded
    apart in earlier calls is no difference of this one."""
    with torch.no_grad():
        for name, x in named_state(module):
            y = state.get(name)
            if y is not None and x.shape == y.shape and not same(x, y):
                x.copy_(y)


def same(x: Tensor, y: Tensor) -> bool:
    return bool(((x == y) | ((x != x) & (y != y))).all())


def change(module: nn.Module, call: Call) -> None:
    """What the user does before the call."""
    if call.before == "hook":
        target = next(iter(module.children()), module)
        target.register_forward_hook(lambda m, a, y: y * 2 if isinstance(y, Tensor) else None)
    if call.before == "freeze":
        for p in list(module.parameters())[:1]:
            p.requires_grad_(False)


def grad_mode(name: str) -> AbstractContextManager[Any]:
    if name == "no_grad":
        return torch.no_grad()
    return torch.inference_mode() if name == "inference" else nullcontext()


# ---------------------------------------------------------------- results


def look(seen: Observation, out: Any, mine: Given, module: nn.Module) -> dict[str, Tensor]:
    """Note the results; returns those that are tensors, by name."""
    paths, spec = pytree.tree_flatten_with_path(out)
    seen.facts["structure"] = str(spec)
    owners = {k: x for k, x in mine.values.items() if isinstance(x, Tensor)}
    owners |= {k: x for k, x in named_state(module)}
    results: dict[str, Tensor] = {}
    for path, x in paths:
        name = "result " + (pytree.keystr(path) or "alone")
        if not isinstance(x, Tensor):
            seen.facts[f"{name} type"] = type(x).__name__
            seen.values[name] = torch.as_tensor(x) if isinstance(x, int | float) else None
            continue
        seen.values[name] = x.detach().clone()
        seen.facts[f"{name} requires_grad"] = x.requires_grad
        seen.facts[f"{name} is contiguous"] = x.is_contiguous()
        seen.facts[f"{name} is"] = sorted(k for k, y in owners.items() if y is x)
        seen.facts[f"{name} overlaps"] = sorted(k for k, y in owners.items() if overlap(x, y))
        owners[name] = results[name] = x
    return results


def overlap(x: Tensor, y: Tensor) -> bool:
    """Whether an edit of one changes the other."""
    if x.numel() == 0 or y.numel() == 0 or x.layout != torch.strided or y.layout != torch.strided:
        return False
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return False
    return bool(places(x) & places(y))


def places(x: Tensor) -> set[int]:
    size = x.untyped_storage().nbytes() // x.element_size()
    numbers = torch.arange(size).as_strided(x.shape, x.stride(), x.storage_offset())
    return set(numbers.flatten().tolist())


# ---------------------------------------------------------------- gradients


def follow(
    seen: Observation,
    call: Call,
    results: dict[str, Tensor],
    mine: Given,
    module: nn.Module,
    seed: int,
) -> None:
    """What the user does with the results."""
    roots = {k: x for k, x in results.items() if x.requires_grad}
    for name, x in mine.values.items():  # edited with numbers that have a gradient
        if isinstance(x, Tensor) and x.requires_grad and not x.is_leaf and call.grad == "grad":
            roots.setdefault(f"argument {name}", x)
    if not roots or call.after == "none":
        return
    wanted = {f"gradient {k}": x for k, x in mine.leaves.items()}
    wanted |= {f"gradient of {k}": p for k, p in module.named_parameters() if p.requires_grad}
    with torch.enable_grad():
        if call.after == "between":
            between(seen, {k: x for k, x in roots.items() if k in results})
            return
        cotangents = [cotangent(x, seed + 7 * k) for k, x in enumerate(roots.values())]
        outputs = list(roots.values())
        if call.after == "double":
            double(seen, outputs, cotangents, wanted)
            return
        if call.after == "batched":
            both = [torch.stack([c, 2 * c]) for c in cotangents]
            grads = torch.autograd.grad(
                outputs, list(wanted.values()), both, is_grads_batched=True, allow_unused=True
            )
            seen.values |= dict(zip(wanted, grads, strict=True))
            return
        if call.after == "retain":
            for x in outputs:
                x.retain_grad()
        torch.autograd.backward(outputs, cotangents)
    for name, x in wanted.items():
        seen.values[name] = copied(x.grad)
    if call.after == "retain":
        for name, x in roots.items():
            seen.values[f"retained {name}"] = copied(x.grad)


def copied(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.detach().clone().to_dense()


def cotangent(x: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype)


def between(seen: Observation, results: dict[str, Tensor]) -> None:
    """Gradients of results by earlier and later results."""
    pairs = [(a, b) for a in results for b in results if a != b][:6]
    for a, b in pairs:
        (d,) = torch.autograd.grad(
            results[b].sum(), results[a], retain_graph=True, allow_unused=True
        )
        seen.values[f"gradient of {b} by {a}"] = copied(d)


def double(
    seen: Observation,
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    wanted: dict[str, Tensor],
) -> None:
    """First gradients, and those of the sum of their squares."""
    total = sum(((y * c).sum() for y, c in zip(outputs, cotangents, strict=True)), torch.zeros(()))
    first = torch.autograd.grad(total, list(wanted.values()), create_graph=True, allow_unused=True)
    seen.values |= {f"first {k}": copied(g) for k, g in zip(wanted, first, strict=True)}
    squares = [(g * g).sum() for g in first if g is not None and g.requires_grad]
    seen.facts["second derivatives"] = bool(squares)
    if not squares:
        return
    second = torch.autograd.grad(sum(squares), list(wanted.values()), allow_unused=True)
    for name, g in zip(wanted, second, strict=True):
        x = wanted[name]
        seen.values[f"second {name}"] = torch.zeros_like(x) if g is None else copied(g)


@contextmanager
def quiet() -> Iterator[None]:
    """gnnc says what runs in torch, which is counted here; Dynamo warns of what it cannot trace."""
    import logging

    names = ("gnnc", "torch._dynamo", "torch.fx")
    before = {n: logging.getLogger(n).level for n in names}
    for n in names:
        logging.getLogger(n).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for n, level in before.items():
            logging.getLogger(n).setLevel(level)


def runner(program: Program, loaded: Loaded, dtype: torch.dtype, compile: Any = None) -> Runner:
    """A runner on a new instance, compiled by `compile` where it is given."""
    instance = loaded.make(program.seed, dtype)
    return Runner(program, instance if compile is None else compile(instance), dtype)
