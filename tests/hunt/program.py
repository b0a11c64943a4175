"""What the hunt runs: a program as Python text, with its arguments and calls.

The text is a whole Python file: imports, `class Model(nn.Module)` or `def function(..)`, and three
literals. `ARGUMENTS` describes each argument (`Argument.parse`), `CALLS` is the list of calls
(`Call`), `SETTINGS` has the `dtype` of parameters and floats, the `values` that floats are drawn
from (normal, ties, nan) and the `seed` of everything that is drawn.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

NAMES = {
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
}
PYG = {
    "torch_geometric.nn": (
        *("GATConv", "GCNConv", "GINConv", "GraphConv", "SAGEConv"),
        *("global_add_pool", "global_max_pool", "global_mean_pool"),
    ),
    "torch_geometric.utils": ("degree", "scatter", "softmax"),
}


def imports(used: Callable[[str], bool]) -> str:
    """The lines that import what is used."""
    lines = [line for name, line in NAMES.items() if used(name)]
    for module, names in PYG.items():
        if chosen := [n for n in names if used(n)]:
            lines.append(f"from {module} import {', '.join(chosen)}")
    return "".join(f"{line}\n" for line in lines)


PRELUDE = imports(lambda name: True)

Dim = str | int


@dataclass(frozen=True)
class Argument:
    """An argument of the model: its dims (a letter is a size that calls choose), how it is drawn.

    `kind`: float, index (integers in [0, below)), bool, or number (a Python float). A float may be
    a `leaf` that requires a gradient, or part of the caller's `graph`. `transposed`: not
    contiguous. `negative`: an index counted from the end as well.
    """

    dims: tuple[Dim, ...]
    kind: str = "float"
    below: Dim | None = None
    flags: frozenset[str] = frozenset()

    @staticmethod
    def parse(text: str) -> Argument:
        """`"N 4, leaf"`, `"2 E, < N"`, `"N, bool"`, `"N 4, graph, transposed"`, `"number"`."""
        first, *rest = [part.strip() for part in text.split(",")]
        if first == "number":
            return Argument((), "number")
        dims = tuple(int(d) if d.isdigit() else d for d in first.split() if d != "-")
        kind, below, flags = "float", None, set[str]()
        for word in rest:
            if word.startswith("<"):
                kind, end = "index", word[1:].strip()
                below = int(end) if end.isdigit() else end
            elif word == "bool":
                kind = word
            else:
                flags.add(word)
        return Argument(dims, kind, below, frozenset(flags))

    def __str__(self) -> str:
        if self.kind == "number":
            return "number"
        words = [" ".join(map(str, self.dims)) or "-"]
        words += [f"< {self.below}"] if self.kind == "index" else []
        words += ["bool"] if self.kind == "bool" else []
        return ", ".join([*words, *sorted(self.flags)])


@dataclass(frozen=True)
class Call:
    """One call: the sizes by letter, the mode, and what is done around it.

    `train`: the module's mode. `grad`: grad, no_grad or inference. `after`: what follows: backward,
    double (gradients of gradients), between (gradients of results by results), retain (gradients
    kept at results), batched, none. `before`: hook (one is added to a module), freeze (a parameter
    takes no gradient any more), again (the arguments of the call before, as they are), data (the
    same, with other numbers put into `e.data`), edit (the same, `e` edited in place).
    """

    sizes: Mapping[str, int]
    train: bool = True
    grad: str = "grad"
    after: str = "backward"
    before: str = ""

    @staticmethod
    def parse(data: Mapping[str, Any]) -> Call:
        sizes = {k: v for k, v in data.items() if k.isupper()}
        return Call(sizes, **{k: v for k, v in data.items() if not k.isupper()})

    def literal(self) -> dict[str, Any]:
        """The call as its literal in `CALLS`: without what is usual."""
        usual = Call({})
        names = ("train", "grad", "after", "before")
        rest = {n: getattr(self, n) for n in names if getattr(self, n) != getattr(usual, n)}
        return {**self.sizes, **rest}


@dataclass(frozen=True)
class Program:
    """A program taken apart: `code` is the text without imports and literals."""

    code: str
    arguments: Mapping[str, Argument]
    calls: tuple[Call, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    title: str = ""

    @property
    def dtype(self) -> torch.dtype:
        return getattr(torch, self.settings.get("dtype", "float64"))

    @property
    def seed(self) -> int:
        return self.settings.get("seed", 0)

    @staticmethod
    def parse(text: str) -> Program:
        """The program in a file."""
        found: dict[str, Any] = {}
        kept: list[ast.stmt] = []
        tree = ast.parse(text)
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = ast.literal_eval(node.value)
            elif isinstance(node, ast.ClassDef | ast.FunctionDef):
                kept.append(node)
        return Program(
            "\n\n\n".join(ast.unparse(node) for node in kept) + "\n",
            {k: Argument.parse(v) for k, v in found["ARGUMENTS"].items()},
            tuple(Call.parse(c) for c in found["CALLS"]),
            found.get("SETTINGS", {}),
            ast.get_docstring(tree) or "",
        )

    def __str__(self) -> str:
        arguments = "".join(f'    "{k}": "{v}",\n' for k, v in self.arguments.items())
        calls = "".join(f"    {literal(c.literal())},\n" for c in self.calls)
        title = f'"""{self.title}"""\n\n' if self.title else ""
        used = {n.id for n in ast.walk(ast.parse(self.code)) if isinstance(n, ast.Name)}
        return (
            f"{title}{imports(used.__contains__)}\n\n{self.code}\n\n"
            f"ARGUMENTS = {{\n{arguments}}}\nCALLS = [\n{calls}]\n"
            f"SETTINGS = {literal(self.settings)}\n"
        )

    @property
    def loaded_text(self) -> str:
        """What is run."""
        return PRELUDE + "\n\n" + self.code

    def load(self) -> Loaded:
        """Run the text. Raises what it raises."""
        _Sources.count += 1
        name = f"<program {_Sources.count}>"
        text = self.loaded_text
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        space: dict[str, Any] = {"__name__": "program"}
        exec(compile(text, name, "exec"), space)
        return Loaded(space.get("Model"), space.get("function"), name)


class _Sources:
    """Each text that was loaded has a file name of its own: Dynamo reads it."""

    count = 0


@dataclass(frozen=True)
class Loaded:
    """A program that can be called: `model` makes a module, or there is a `function`."""

    model: Callable[[], nn.Module] | None
    function: Callable[..., Any] | None
    file: str

    def make(self, seed: int, dtype: torch.dtype) -> nn.Module | Callable[..., Any]:
        """A new instance (the function itself, where it is one)."""
        if self.model is None:
            assert self.function is not None
            return self.function
        torch.manual_seed(seed)
        return self.model().to(dtype)

    def forget(self) -> None:
        linecache.cache.pop(self.file, None)


def literal(x: Any) -> str:
    """A literal with the quotes that formatters like."""
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in x.items()) + "}"
    return f'"{x}"' if isinstance(x, str) else repr(x)


# ---------------------------------------------------------------- arguments

TIES = (-1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0)


def draw(
    argument: Argument, sizes: Mapping[str, int], generator: torch.Generator, values: str
) -> Any:
    """The base of an argument in float64: what `given` makes the argument from."""
    if argument.kind == "number":
        return float(torch.randint(1, 4, (), generator=generator)) / 2
    shape = [d if isinstance(d, int) else sizes[d] for d in argument.dims]
    if argument.kind == "bool":
        return torch.rand(shape, generator=generator) < 0.5
    if argument.kind == "index":
        below = argument.below if isinstance(argument.below, int) else sizes[str(argument.below)]
        low = -below if "negative" in argument.flags else 0
        x = torch.randint(low, max(below, 1), shape, generator=generator)
        return x.sort().values if "sorted" in argument.flags else x
    if values == "normal":
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    x = torch.tensor(TIES, dtype=torch.float64)[torch.randint(7, shape, generator=generator)]
    if values == "nan":
        odd = torch.rand(shape, generator=generator) < 0.08
        x = torch.where(odd, torch.full_like(x, float("nan")), x)
    return x


@dataclass
class Given:
    """The arguments of a call, and the leaves that their gradients arrive at."""

    values: dict[str, Any]
    leaves: dict[str, Tensor]


def given(program: Program, bases: Mapping[str, Any], dtype: torch.dtype) -> Given:
    """The arguments for these bases, new at each call of this function."""
    out = Given({}, {})
    for name, argument in program.arguments.items():
        x = bases[name]
        if not isinstance(x, Tensor):
            out.values[name] = x
            continue
        x = x.to(program.dtype).to(dtype) if x.is_floating_point() else x.clone()
        if "transposed" in argument.flags and x.dim() > 1:
            x = x.transpose(0, 1).contiguous().transpose(0, 1)
        else:
            x = x.clone()
        if argument.flags & {"leaf", "graph"}:
            out.leaves[name] = x.requires_grad_()
            x = x * 1.0 if "graph" in argument.flags else x
        out.values[name] = x
    return out
