"""Whether code that Dynamo cannot trace draws random numbers: as its text says, for nothing of it
has run."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from typing import Any

from ..importer.memory.effects import RANDOM

_DRAWING = {name for name in RANDOM if "dropout" not in name} | {
    *("choice", "choices", "default_rng", "gauss", "permutation", "randint", "random_sample"),
    *("sample", "shuffle"),
}
"""Names of functions of torch, numpy and Python that draw, and which no program has."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def draws_where_it_failed(error: Exception) -> bool:
    """Whether the function at which tracing ended draws random numbers, or one of its module that
    it calls."""
    frames = list(getattr(error, "real_stack", None) or ())
    if not frames:
        return False
    functions = _functions(frames[-1].filename)
    inside = [f for f in functions if f.lineno <= (frames[-1].lineno or 0) <= (f.end_lineno or 0)]
    if not inside:
        return False
    todo, met = [max(inside, key=lambda f: f.lineno)], set[str]()
    by_name = {f.name: f for f in functions}
    while todo:
        names = set(_called(todo.pop()))
        if names & _DRAWING:
            return True
        todo += [by_name[n] for n in names - met if n in by_name]
        met |= names
    return False


@functools.lru_cache(maxsize=16)
def _functions(path: str) -> tuple[Function, ...]:
    """Those that a file defines; none where it cannot be read."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return ()
    return tuple(n for n in ast.walk(tree) if isinstance(n, Function))


def _called(function: Function) -> Iterator[str]:
    """The names of what a function calls: of `torch.rand(3)` the last, and of `x.uniform_()` that
    without the mark of an edit."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name: Any = getattr(node.func, "attr", getattr(node.func, "id", ""))
            yield name.rstrip("_")
