"""Runs a module of phases, @prepare, @forward and @backward, linked by the values' names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...runtime.carrier import Carrier
from ..signature import arguments, results
from .inter import run

PHASES = ("prepare", "forward", "backward")


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of a module by name."""
    return {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, FuncOp)}


def argument_names(func: FuncOp) -> list[str]:
    """The names of the arguments: `inter.name`, else the name in the text, else `arg<i>`."""
    return [name for name, _, _ in arguments(func)]


def result_names(func: FuncOp) -> list[str]:
    """The names of the results: `inter.name`, else the name in the text, else `result<i>`."""
    return [name for name, _, _ in results(func)]


def run_function(
    module: ModuleOp, name: str, values: Mapping[str, Any], carrier: Carrier | None = None
) -> dict[str, Any]:
    """Calls one function with arguments by name and gives its results by name.

    Raises KeyError where `values` lacks an argument.
    """
    func = functions(module)[name]
    wanted = argument_names(func)
    if missing := [n for n in wanted if n not in values]:
        raise KeyError(f"@{name} needs {', '.join(missing)}: no earlier phase or caller gives it")
    found = run(module, name, *(values[n] for n in wanted), carrier=carrier)
    return dict(zip(result_names(func), found, strict=True))


def run_phases(
    module: ModuleOp, values: Mapping[str, Any], carrier: Carrier | None = None
) -> dict[str, Any]:
    """Runs the phases that the module has, in order; `values` are the caller's arguments by name,
    cotangents included. Returns all results by name, also those that only cross. With a `carrier`
    of messages it is the program of one rank of several.

    A name that two phases both give would overwrite a value, so that raises ValueError.
    """
    known = dict(values)
    given: dict[str, Any] = {}
    for name in PHASES:
        if name not in functions(module):
            continue
        new = run_function(module, name, known, carrier)
        if twice := [n for n in new if n in known]:
            raise ValueError(f"@{name} gives {twice[0]}, which is known already: rename it")
        known |= new
        given |= new
    return given
