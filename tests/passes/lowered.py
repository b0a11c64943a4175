"""Programs on their way to nests, and questions about the IR that the tests ask."""

from __future__ import annotations

import math

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from gnnc.dialects.intra import loops
from gnnc.dialects.intra.bindings import AllocOp
from gnnc.dialects.intra.loops import TraverseOp
from gnnc.dialects.intra.syntax import buffer_dims
from gnnc.dialects.meaning.check import parse_module
from gnnc.passes.driver.pipelines import passes_of

TIDY = "canonicalize,cse"
TRAIN = (
    f"{TIDY},unify-sets,{TIDY},infer-domains,autodiff,{TIDY},dce,plan-saves,hoist-invariants,"
    "split-phases"
)
"""From a program of inter to the phases of a training step."""
VANILLA = f"{TIDY},unify-sets,autodiff,{TIDY},dce,split-phases"
"""The same with every value on its whole set."""
INFER = f"{TIDY},unify-sets,infer-domains,split-phases"


def after(module: ModuleOp | str, specification: str) -> ModuleOp:
    """A copy of a module (or of its text) that passes were run on, verified after each."""
    module = parse_module(module) if isinstance(module, str) else module.clone()
    for p in passes_of(specification):
        p.apply(Context(), module)
        module.verify()
    return module


def phase(module: ModuleOp, name: str = "forward") -> FuncOp:
    """One function of a module."""
    return next(
        f for f in module.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == name
    )


def nests(module: ModuleOp, name: str = "forward") -> list[TraverseOp]:
    """The nests of a phase."""
    return loops.nests(phase(module, name))


def temporaries(module: ModuleOp, name: str = "forward") -> list[tuple[str, int]]:
    """(domain, numbers of a row) of the temporaries of a phase."""
    return [
        (str(op.domain) if op.domain is not None else "unit", row_numbers(op.result))
        for op in phase(module, name).body.block.ops
        if isinstance(op, AllocOp)
    ]


def row_numbers(buffer: SSAValue) -> int:
    """How many numbers a row of a buffer holds."""
    return math.prod(buffer_dims(buffer))
