"""A value in the place of one that eager could not compute, to see whether anybody needs it.

Where a statement raises in eager and not in a compiled call, nothing may need what it gives: then
the program also runs with a value there that is no number, and that nobody can read. Where somebody
asks for its shape, and a bad index is what eager could not read by, it runs with rows of NaN.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from .compare import kind_of_bad_index
from .execute import Observation, runner
from .program import Program
from .trees import edits


class Read(Exception):
    """Somebody needs the value that there is none of."""


class Asked(Exception):
    """Somebody wants to know its shape: perhaps for what nobody needs either."""


class Missing:
    """What is made of it is missing too; edits of other tensors with it, branches and sizes need
    it."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        given = kwargs or {}
        edits = name.endswith("_") or name.startswith("__i") or bool(given.get("inplace"))
        if name == "__setitem__" or edits:
            edited = args[0] if args else None
        else:
            edited = given.get("out")
        statistics = "batch_norm" in name or "instance_norm" in name
        if isinstance(edited, Tensor) or statistics:
            raise Read(name)
        return cls()

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim", "dtype", "device", "size", "dim", "numel", "item", "tolist"):
            raise Asked(name)
        return Missing()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Missing()

    def __setitem__(self, index: Any, value: Any) -> None:
        pass

    def __getitem__(self, index: Any) -> Any:
        return Missing()

    def _made(self, *others: Any) -> Any:
        return Missing()

    def _read(self, *others: Any) -> Any:
        raise Read

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _made
    __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _made
    __neg__ = __abs__ = __invert__ = __and__ = __or__ = __lt__ = __le__ = __gt__ = __ge__ = _made
    __bool__ = __len__ = __iter__ = __index__ = __int__ = __float__ = _read  # type: ignore[assignment]


MISSING = Missing()
IMPORT = "\nfrom gnnc.tests.hunt.poison import MISSING\n"


def without(program: Program, line: int) -> Program | None:
    """A program with nothing in the place of what is assigned on a line of it; None where no line
    is an assignment to variables."""
    lines = program.code.splitlines()
    number = line - (program.loaded_text.count("\n") - program.code.count("\n"))
    for node in ast.walk(ast.parse(program.code)):
        if isinstance(node, ast.Assign) and node.lineno == number == node.end_lineno:
            calls = (n for n in ast.walk(node.value) if isinstance(n, ast.Call))
            if IMPORT in program.code and any(edits(call, set()) for call in calls):
                return None  # not run to its end, it could edit others
            names = [n for t in node.targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])]
            if all(isinstance(n, ast.Name) for n in names):
                values = f"{' = '.join(map(ast.unparse, names))} = MISSING"
                lines[number - 1] = " " * node.col_offset + values
                return replace(program, code="\n".join(lines) + IMPORT)
    return None


def observed_without(program: Program, call: int, state: dict[str, Tensor]) -> Observation | None:
    """What eager does in a call of such a program; None where something needs what is missing."""
    loaded = program.load()
    mine = runner(program, loaded, program.dtype)
    for k in range(call):
        mine.run(k)
    seen = mine.run(call, state)
    loaded.forget()
    read = seen.raised is not None and seen.raised[1] == Read.__name__
    return None if read or Missing.__name__ in seen.facts.values() else seen


class AnyIndex(TorchFunctionMode):
    """Reads by an index that is out of range give rows of NaN, and writes leave only these."""

    READS = frozenset({"__getitem__", "index_select", "embedding", "gather"})
    WRITES = frozenset({"index_add", "scatter_add", "scatter_reduce", "index_reduce"})
    WRITES |= {"scatter", "index_copy", "index_fill", "index_put"}

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        try:
            return func(*args, **given)
        except (IndexError, RuntimeError) as error:
            if kind_of_bad_index(str(error)) is None:
                raise
            if func.__name__ in self.READS:
                args, given = tree_map_only(Tensor, in_range, (args, given))
                return nowhere(func(*args, **given))
            if func.__name__ in self.WRITES:
                return nowhere(args[0])
            if func.__name__ == "__setitem__" or func.__name__.removesuffix("_") in self.WRITES:
                args[0].data.copy_(nowhere(args[0]))
                return args[0]
            raise


def nowhere(x: Tensor) -> Tensor:
    """A tensor like it of no numbers."""
    return torch.full_like(x, float("nan") if x.is_floating_point() else -1)


def in_range(x: Tensor) -> Tensor:
    """Indices that read the first row, and tensors that have one."""
    return x.new_zeros([max(n, 1) for n in x.shape] if x.is_floating_point() else x.shape)


def observed_with_any_index(program: Program, call: int, state: dict[str, Tensor]) -> Observation:
    """What eager does in a call whose indices may be out of range."""
    loaded = program.load()
    mine = runner(program, loaded, program.dtype)
    for k in range(call):
        mine.run(k)
    with AnyIndex():
        seen = mine.run(call, state)
    loaded.forget()
    return seen
