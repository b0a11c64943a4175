"""Runs a lowered module: @structure makes the sets, then the phases run, linked by buffer names.

And random arguments for one, from what its buffers say of themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...runtime.carrier import Carrier
from ..attributes import PHASE
from ..inter.sets import SetEnv
from ..inter.types import is_bool, is_float
from ..intra.bindings import InputOp, OutputOp, ViewOp
from ..intra.steps import phases
from ..intra.syntax import buffer_dims, element
from .graphs import fixed_sizes, made_sets, random_arguments
from .inter import as_argument, run
from .intra import run_phase
from .phases import PHASES, argument_names, functions, result_names, run_phases
from .tables import size
from .world import Array, SetVal, World

STRUCTURE = "structure"


def is_lowered(module: ModuleOp) -> bool:
    """Whether lower-to-intra made the module's functions."""
    return bool(lowered_phases(module))


def lowered_phases(module: ModuleOp) -> list[FuncOp]:
    """The functions on buffers, in the order in which they run."""
    found = {func.sym_name.data: func for func in phases(module)}
    return [found[name] for name in PHASES if name in found]


def structure(
    module: ModuleOp, values: Mapping[str, Any], carrier: Carrier | None = None
) -> tuple[World, dict[str, Array]]:
    """The sets of a lowered module, and the rows that @structure hands on, by name. What these are
    made of on other ranks comes by the `carrier`.

    Raises KeyError where `values` lacks an argument, ValueError and IndexError for wrong ones.
    """
    func = functions(module).get(STRUCTURE)
    if func is None:
        return World(SetEnv(), lambda name: no_set(name)), {}
    args, wanted = func.body.block.args, argument_names(func)
    if missing := [n for n in wanted if n not in values]:
        raise KeyError(f"@{STRUCTURE} needs {', '.join(missing)}")
    given: dict[SSAValue, Any] = {
        a: as_argument(a.type, values[n], n) for a, n in zip(args, wanted, strict=True)
    }
    results = run(module, STRUCTURE, *given.values(), carrier=carrier)
    sets = made_sets(func, given, carrier)
    rows = {
        n: x for n, x in zip(result_names(func), results, strict=True) if not isinstance(x, SetVal)
    }
    return World(SetEnv.of(func), lambda name: sets[name]), rows


def no_set(name: str) -> SetVal:
    """Raises KeyError: a module without @structure has no sets."""
    raise KeyError(f"set {name}: the module has no @{STRUCTURE}")


def run_lowered(
    module: ModuleOp, values: Mapping[str, Any], carrier: Carrier | None = None
) -> dict[str, Array]:
    """Runs the phases that a lowered module has; `values` are sets and rows by name, cotangents
    included. Returns all outputs by name, also those that only cross. Without a `carrier` the
    world has one rank.

    Raises KeyError where a buffer has no value, ValueError where one has another shape or a name
    is given twice, and IndexError where the program reads or writes out of bounds.
    """
    world, rows = structure(module, values, carrier)
    known: dict[str, Any] = {**values, **rows}
    results: dict[str, Array] = {}
    for func in lowered_phases(module):
        new = run_phase(func, world, known, carrier=carrier)
        if twice := [n for n in new if n in known]:
            raise ValueError(f"@{func.sym_name.data} gives {twice[0]}, which is known already")
        known |= new
        results |= new
    return results


def results_by_name(module: ModuleOp, values: Mapping[str, Any]) -> dict[str, Array]:
    """The rows that the phases of a module give, lowered or not."""
    if is_lowered(module):
        return run_lowered(module, values)
    found = run_phases(module, values)
    return {n: x for n, x in found.items() if not isinstance(x, SetVal)}


# ---------------------------------------------------------------- random arguments


def random_values(
    modules: Sequence[ModuleOp],
    rng: np.random.Generator,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Sets and rows by name that suit all `modules`: states of one program, of which the last is
    lowered. `sizes` fixes the number of rows of sets.

    Raises NoArguments where the declarations of a set cannot be met.
    """
    last = modules[-1]
    funcs = functions(last)
    values: dict[str, Any] = {}
    wanted = fixed_views(last) | dict(sizes or {})
    for module in modules:
        for func in functions(module).values():
            wanted |= fixed_sizes(func)
    if STRUCTURE in funcs:
        func = funcs[STRUCTURE]
        args = random_arguments(func, rng, wanted)
        values |= dict(zip(argument_names(func), args, strict=True))
    world, made = structure(last, values)
    inner = set(made)
    for module in modules:
        inner |= result_buffers(module)
    for module in modules:
        for func in lowered_phases(module):
            for op in func.body.block.ops:
                if isinstance(op, InputOp) and op.buffer.data not in values | dict.fromkeys(inner):
                    shape = (size(world, op.domain), *buffer_dims(op.result))
                    values[op.buffer.data] = random_rows(rng, op, shape)
    return values


def random_rows(rng: np.random.Generator, op: InputOp, shape: tuple[int, ...]) -> Array:
    """Numbers for an input."""
    elem = element(op.result.type)
    if is_float(elem):
        return rng.standard_normal(shape)
    return rng.random(shape) < 0.5 if is_bool(elem) else rng.integers(0, 8, shape)


def result_buffers(module: ModuleOp) -> set[str]:
    """Names of rows that some phase of a module gives."""
    names: set[str] = set()
    for func in functions(module).values():
        if PHASE in func.attributes:
            ops = func.body.block.ops
            names |= {op.buffer.data for op in ops if isinstance(op, OutputOp)}
            names |= {op.gives.data for op in ops if isinstance(op, InputOp) and op.gives}
        elif func.sym_name.data in PHASES:
            names |= set(result_names(func))
    return names


def fixed_views(module: ModuleOp) -> dict[str, int]:
    """Sizes that views between a single row and the rows of a set ask of that set."""
    out: dict[str, int] = {}
    for func in lowered_phases(module):
        for op in func.body.block.ops:
            required = op.required() if isinstance(op, ViewOp) else None
            if required is not None and not required[0].keys.data:
                out[required[0].set_name.data] = required[1]
    return out
