"""Runs a module of phases, @prepare, @forward and @backward, linked by the values' names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ..attributes import NAME
from .inter import run

PHASES = ("prepare", "forward", "backward")


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of a module by name."""
    return {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, FuncOp)}


def argument_names(func: FuncOp) -> list[str]:
    """The names of the arguments: `inter.name`, else the name in the text, else `arg<i>`."""
    attrs = func.arg_attrs.data if func.arg_attrs is not None else ()
    return [
        _name(attrs[i] if attrs else None) or arg.name_hint or f"arg{i}"
        for i, arg in enumerate(func.body.block.args)
    ]


def result_names(func: FuncOp) -> list[str]:
    """The names of the results: `inter.name`, else the name in the text, else `result<i>`."""
    attrs = func.res_attrs.data if func.res_attrs is not None else ()
    last = func.body.block.last_op
    values = last.operands if last is not None else ()
    return [
        _name(attrs[i] if attrs else None) or value.name_hint or f"result{i}"
        for i, value in enumerate(values)
    ]


def _name(attrs: DictionaryAttr | None) -> str | None:
    name = attrs.data.get(NAME) if attrs is not None else None
    return name.data if isinstance(name, StringAttr) else None


def run_function(module: ModuleOp, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Calls one function with arguments by name and gives its results by name.

    Raises KeyError where `values` lacks an argument.
    """
    func = functions(module)[name]
    wanted = argument_names(func)
    if missing := [n for n in wanted if n not in values]:
        raise KeyError(f"@{name} needs {', '.join(missing)}: no earlier phase or caller gives it")
    results = run(module, name, *(values[n] for n in wanted))
    return dict(zip(result_names(func), results, strict=True))


def run_phases(module: ModuleOp, values: Mapping[str, Any]) -> dict[str, Any]:
    """Runs the phases that the module has, in order; `values` are the caller's arguments by name,
    cotangents included. Returns all results by name, also those that only cross.

    A name that two phases both give would overwrite a value, so that raises ValueError.
    """
    known = dict(values)
    results: dict[str, Any] = {}
    for name in PHASES:
        if name not in functions(module):
            continue
        new = run_function(module, name, known)
        if twice := [n for n in new if n in known]:
            raise ValueError(f"@{name} gives {twice[0]}, which is known already: rename it")
        known |= new
        results |= new
    return results
