"""A sample inside a small graph program, as Python source: so a failure reads as a user's code.

- `rows`: some tensors that are equally long are rows that an index reads from tables; the result is
  reduced by another index. Other float tensors are parameters.
- `plain`: all tensors are arguments; `strided`: the same with gaps in memory.
- `single`: all sizes are constants, and float tensors are parameters.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from .samples import Case

EMBEDDINGS = ("rows", "plain", "strided", "single")

GROUPS = 4
"""The rows that the results of `rows` are reduced to."""

_serial = itertools.count()


@dataclass(frozen=True, eq=False)
class Program:
    """A program and the values of its arguments. `index` is the position of the first of the two
    indices of `rows`, if it is that; the second is the last argument."""

    case: Case
    embedding: str
    text: str
    function: Callable[..., Any]
    args: tuple[Tensor, ...]
    index: int | None = None

    def arguments(self, dtype: torch.dtype | None = None) -> list[Tensor]:
        """Fresh copies of the arguments; the float32 ones of `dtype`, where one is given."""
        return [self._fresh(x, dtype) for x in self.args]

    def _fresh(self, x: Tensor, dtype: torch.dtype | None) -> Tensor:
        y = x.detach().clone()
        if dtype is not None and y.dtype == torch.float32:
            y = y.to(dtype)
        if self.embedding == "strided" and y.dim():
            y = torch.stack([y, y], -1)[..., 1]
        if isinstance(x, nn.Parameter):
            return nn.Parameter(y, requires_grad=x.requires_grad)
        if self.embedding in ("rows", "single") and not x.is_floating_point():
            for dim in range(0 if self.embedding == "single" else 1, x.dim()):
                torch._dynamo.mark_static(y, dim)  # the last dimension of integers counts rows
        return y.requires_grad_(x.requires_grad)

    def resized(self, rows: Sequence[int]) -> Program:
        """The same program on these of the rows that the index reads."""
        assert self.index is not None
        chosen = torch.tensor(rows, dtype=torch.int64)
        short = (x[chosen] for x in self.args[self.index :])
        return replace(self, args=(*self.args[: self.index], *short))


def programs(case: Case, embedding: str) -> list[Program]:
    """The programs of one kind for a sample; the first that compiles is enough. None where there
    is nothing to embed in this way."""
    tensors = list({id(x): x for x in case.tensors}.values())
    if any(x.layout is not torch.strided for x in tensors):
        return []
    if not tensors and embedding != "plain":
        return []
    if embedding == "rows":
        return [_embed(case, embedding, tensors, rows) for rows in _choices(case, tensors)]
    if embedding == "single" and case.variant.in_place:
        return []
    return [_embed(case, embedding, tensors, ())]


def _choices(case: Case, tensors: Sequence[Tensor]) -> list[tuple[int, ...]]:
    """Which tensors may be rows of one set, the largest choice first: tensors of equal length, and
    equal rank where operands are aligned at their last dimension."""
    aligned = _is_pointwise(case.op)
    out: list[tuple[int, ...]] = []
    for count in range(len(tensors), 0, -1):
        for chosen in itertools.combinations(range(len(tensors)), count):
            mine = [tensors[k] for k in chosen]
            equal = len({x.shape[0] if x.dim() else -1 for x in mine}) == 1 and mine[0].dim()
            if equal and (not aligned or len({x.dim() for x in mine}) == 1):
                out.append(chosen)
    return out[:6]


def _is_pointwise(op: Any) -> bool:
    """Whether operands of fewer dimensions are aligned at the last."""
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

    names = ("where", "lerp", "addcmul", "addcdiv", "masked_fill", "clamp", "isclose")
    return isinstance(op, UnaryUfuncInfo | BinaryUfuncInfo) or op.name in names


def _embed(case: Case, embedding: str, tensors: Sequence[Tensor], rows: Sequence[int]) -> Program:
    text = _Text({id(x): f"{'x' if k in rows else 't'}{k}" for k, x in enumerate(tensors)})
    count = tensors[rows[0]].shape[0] if rows else 0
    generator = torch.Generator().manual_seed(7)
    index = torch.randperm(count + 2, generator=generator)[:count]
    args: list[Tensor] = []
    lines: list[str] = []
    for k, x in enumerate(tensors):
        edited = case.variant.in_place and x is case.input
        if k in rows:
            args.append(_table(x, index))
            lines.append(f"x{k} = t{k}.index_select(0, index)")
        elif embedding in ("rows", "single") and x.is_floating_point() and not edited:
            args.append(nn.Parameter(x.detach().clone(), requires_grad=x.requires_grad))
        else:
            args.append(x.detach().clone().requires_grad_(x.requires_grad))
            if edited and x.requires_grad:
                lines.append(f"t{k} = t{k}.clone()")
    lines.append(f"y = {_call(case, text)}")
    results = ["y", *([text.of(case.input)] if case.variant.in_place else [])]
    parameters = [f"t{k}" for k in range(len(tensors))]
    if not tensors:  # something has to be compiled
        args.append(torch.ones(3))
        parameters.append("other")
        results.append("other + 1")
    first = len(args) if rows else None
    if rows:
        args += [index, torch.randint(GROUPS, (count,), generator=generator)]
        parameters += ["index", "target"]
        lines += [
            "z = y if isinstance(y, torch.Tensor) else y[0]",
            "if z.is_floating_point() and z.dim() and z.shape[0] == index.shape[0]:",
            f"    z = torch.zeros(({GROUPS}, *z.shape[1:]), dtype=z.dtype).index_add(0, target, z)",
            f"    return {', '.join([*results, 'z'])}",
        ]
    lines.append(f"return {', '.join(results)}")
    source = f"def program({', '.join(parameters)}):\n" + "".join(f"    {x}\n" for x in lines)
    return Program(case, embedding, source, _made(case, source, text.space), tuple(args), first)


def _made(case: Case, source: str, space: dict[str, Any]) -> Callable[..., Any]:
    """The function of a source, which is known to tracebacks."""
    file = f"<{case} {next(_serial)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), space)
    return space["program"]


def _table(x: Tensor, index: Tensor) -> Tensor:
    """A table whose rows at the index are those of x."""
    count = len(index) + 2
    table = torch.ones((count, *x.shape[1:]), dtype=x.dtype)
    if len(index):
        table[:] = x.detach()[torch.arange(count) % len(index)]
    table[index] = x.detach()
    return table.requires_grad_(x.requires_grad)


def _call(case: Case, text: _Text) -> str:
    given = [text.of(x) for x in case.args] + [f"{k}={text.of(v)}" for k, v in case.kwargs.items()]
    v, first = case.variant, text.of(case.input)
    if v.name:
        return f"{first}.{v.name}({', '.join(given)})"
    text.space["op"] = v.function
    return f"op({', '.join([first, *given])})"


@dataclass
class _Text:
    """Renders a sample as source; `names` are those of its tensors, `space` what the source uses
    besides."""

    names: dict[int, str]
    space: dict[str, Any] = field(default_factory=lambda: {"torch": torch})

    def of(self, x: Any) -> str:
        match x:
            case Tensor():
                return self.names[id(x)]
            case tuple():
                return "(" + "".join(f"{self.of(y)}, " for y in x) + ")"
            case list():
                return "[" + ", ".join(self.of(y) for y in x) + "]"
            case dict():
                return "{" + ", ".join(f"{k!r}: {self.of(v)}" for k, v in x.items()) + "}"
            case slice():
                return f"slice({self.of(x.start)}, {self.of(x.stop)}, {self.of(x.step)})"
            case float() if x != x or x in (float("inf"), -float("inf")):
                return f"float('{x}')"
            case torch.device():
                return f"torch.device('{x}')"
            case bool() | int() | float() | complex() | str() | None:
                return repr(x)
            case torch.dtype() | torch.memory_format() | torch.layout():
                return repr(x)
            case _ if x is Ellipsis:
                return "..."
        name = f"constant{len(self.space)}"
        self.space[name] = x
        return name
