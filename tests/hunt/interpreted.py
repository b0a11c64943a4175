"""A program that the interpreter runs in place of compiled C: everything from Dynamo to autograd is
the product's own, only the passes after `split-phases`, the printer and the C compiler are left
out.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.attributes import COTANGENT, GRAD
from gnnc.dialects.inter.base import StructureOp
from gnnc.dialects.inter.types import UNIT, RowsType
from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.phases import argument_names, functions, result_names, run_function
from gnnc.dialects.signature import arg_attributes, result_attributes, results
from gnnc.frontend import compiler
from gnnc.frontend.torch import compile as torch_compile
from gnnc.passes.driver.pipelines import Between, passes_of
from gnnc.passes.driver.runner import PassRunner
from gnnc.passes.lowering.lower_to_intra import names_read
from gnnc.runtime.carrier import Carrier
from gnnc.runtime.cpu.memory import HOST
from gnnc.runtime.layout import Places
from gnnc.runtime.program import DTYPES, Buffer, OnGraph
from gnnc.runtime.sets.sets import SetData

PASSES = {
    True: "canonicalize,cse,autodiff,canonicalize,cse,dce-sets,split-phases",
    False: "canonicalize,cse,dce-sets,split-phases",
}
"""By whether there are gradients."""


@contextmanager
def interpreting() -> Iterator[None]:
    """While this holds, `gnnc.compile` makes interpreted programs."""
    before = torch_compile.compile_module
    torch_compile.compile_module = interpreted  # type: ignore[assignment]
    try:
        yield
    finally:
        torch_compile.compile_module = before


def interpreted(
    module: ModuleOp, training: bool, options: compiler.Options, ranks: Between | None = None
) -> Interpreted:
    """What `compile_module` gives, interpreted, of one rank.

    Raises:
        PassFailedException: a pass refused the program.
        PassCrash: a bug in a pass.
    """
    ctx = Context()
    compiler.load_dialects(ctx)
    PassRunner(ctx, passes_of(PASSES[training])).run(module)
    return Interpreted(module)


def buffers(names: Sequence[str], types: Sequence[Any], start: int) -> list[Buffer]:
    """The rows among typed names; sets have no buffer."""
    return [
        Buffer(
            start + i,
            name,
            tuple(t.dims),
            str(t.elem),
            None if t.dom.set == UNIT else [t.dom.set, list(t.dom.keys)],
            None,
        )
        for i, (name, t) in enumerate(zip(names, types, strict=True))
        if isinstance(t, RowsType)
    ]


def named(
    names: Sequence[str], attributes: Sequence[Mapping[str, Attribute]], mark: str
) -> dict[str, str]:
    """What the attribute `mark` says, by the names of those that have it."""
    pairs = zip(names, attributes, strict=True)
    return {n: x.data for n, a in pairs if isinstance(x := a.get(mark), StringAttr)}


class Phase:
    """@forward or @backward: its interface as `gnnc.runtime.program.Phase` has it. What @prepare
    gives is no input."""

    def __init__(self, func: FuncOp, prepared: Sequence[str]) -> None:
        self.name = func.sym_name.data
        args = [
            (n, a.type)
            for n, a in zip(argument_names(func), func.body.block.args, strict=True)
            if n not in prepared and isinstance(a.type, RowsType)
        ]
        outputs = func.function_type.outputs.data
        if not all(isinstance(t, RowsType) for t in outputs):
            raise PassFailedException(f"a set crosses from @{self.name}")
        self.inputs = buffers([n for n, _ in args], [t for _, t in args], 0)
        self.outputs = buffers(result_names(func), list(outputs), len(self.inputs))
        self.kernels = ["interpreted"]
        self.launches: list[Any] = []


class PhaseOnGraph:
    """A phase with the sets of one graph."""

    memory = HOST
    keep: tuple[Any, ...] = ()

    def __init__(self, phase: Phase, module: ModuleOp, known: Mapping[str, Any]) -> None:
        self.phase, self.module, self.known = phase, module, known
        self.sizes = {name: v.n for name, v in known.items() if isinstance(v, SetVal)}
        self.rows = {b.slot: self.count(b) for b in phase.outputs}

    def count(self, b: Buffer) -> int:
        return 1 if b.domain is None else self.sizes[b.domain[0]]

    def placed(self, spent: tuple[int, ...] = ()) -> Places:
        """Temporaries are arrays of the interpreter."""
        return Places([], [], [])

    def most_alive(self, held: Collection[int] = ()) -> int:
        return 0

    def call(self, addresses: Mapping[int, int], spent: tuple[int, ...] = ()) -> None:
        """Run the phase; `addresses` gives the inputs and outputs by their slots. Those that are
        `spent` hold nothing afterwards."""
        given = {b.name: self.at(b, addresses[b.slot]).copy() for b in self.phase.inputs}
        results = run_function(self.module, self.phase.name, {**self.known, **given})
        for b in self.phase.outputs:
            self.at(b, addresses[b.slot])[...] = results[b.name]
        for b in self.phase.inputs:
            if b.slot in spent:
                ctypes.memset(addresses[b.slot], 255, self.at(b, addresses[b.slot]).nbytes)

    def at(self, b: Buffer, address: int) -> np.ndarray[Any, Any]:
        """The array of a buffer."""
        shape = (self.count(b), *b.row)
        dtype = np.dtype(DTYPES[b.dtype])
        size = math.prod(shape) * dtype.itemsize
        if size == 0:
            return np.empty(shape, dtype)
        raw = (ctypes.c_char * size).from_address(address)
        return np.frombuffer(raw, dtype).reshape(shape)


class Interpreted:
    """The interface of `gnnc.runtime.program.Program`, over a module of phases."""

    kernels = ("interpreted",)
    path = Path("interpreted")
    source = ""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        funcs = functions(module)
        prepare = funcs["prepare"]
        self.prepared = result_names(prepare)
        phases = {n: f for n, f in funcs.items() if n != "prepare"}
        for name, f in phases.items():
            if any(isinstance(op, StructureOp) for op in f.body.block.ops):  # as lower-to-intra
                raise PassFailedException(f"@{name} makes sets from floats of the call")
        self.phases = {n: Phase(f, self.prepared) for n, f in phases.items()}
        self.structure_inputs = [
            n
            for n, a in zip(argument_names(prepare), prepare.body.block.args, strict=True)
            if isinstance(a.type, RowsType)
        ]
        self.gradients: dict[str, str] = {}
        self.cotangents: dict[str, str] = {}
        self.read_for: dict[str, list[str]] = {}
        if (func := funcs.get("backward")) is not None:
            self.read_for = {
                name: [x.data for x in names_read(func, v)]
                for name, v, attrs in results(func)
                if GRAD in attrs
            }
            self.gradients = named(result_names(func), result_attributes(func), GRAD)
            self.cotangents = named(argument_names(func), arg_attributes(func), COTANGENT)

    def on_graph(
        self,
        sets: Mapping[str, SetData],
        rows: Mapping[str, Any],
        device: str = "cpu",
        carrier: Carrier | None = None,
    ) -> OnGraph:
        """Run @prepare for one graph, of one rank."""
        given = {
            name: SetVal(s.size, {k: np.asarray(m.array, np.int64) for k, m in s.maps.items()})
            for name, s in sets.items()
        }
        known: dict[str, Any] = {**given, **rows}
        known |= run_function(self.module, "prepare", known)
        phases = {n: PhaseOnGraph(p, self.module, known) for n, p in self.phases.items()}
        return OnGraph(None, phases, HOST)  # type: ignore[arg-type]
