"""Runs programs as C and by the interpreter on the same numbers: what the printers' tests
compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from gnnc.dialects.inter.types import SetType, set_type
from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.lowered import STRUCTURE, random_values, results_by_name
from gnnc.dialects.meaning.phases import PHASES, argument_names, functions
from gnnc.frontend.compiler import artifact_of
from gnnc.frontend.targets import default_target
from gnnc.passes.driver.pipelines import passes_of
from gnnc.passes.targets import target_named
from gnnc.runtime.carrier import Carrier
from gnnc.runtime.program import DTYPES, PhaseOnGraph, Program
from gnnc.runtime.sets.sets import MapData, SetData
from gnnc.runtime.sets.tables import Tables

TRAIN = (
    "canonicalize,cse,unify-sets,canonicalize,cse,infer-domains,autodiff,canonicalize,cse,dce,"
    "plan-saves,hoist-invariants,split-phases"
)
INFER = "canonicalize,cse,unify-sets,infer-domains,split-phases"
FINE = "schedule{{target=openmp vector-bytes={bytes} block=5 grain=16 chunks=7}}"
"""Small graphs are cut into chunks and blocks too, and have hubs."""
COARSE = "schedule{{target=openmp vector-bytes={bytes}}}"
FILL = 77

Call = Callable[[PhaseOnGraph, Tables, Mapping[int, Any]], None]
"""Runs a phase on its inputs and outputs, which are given by their place in the argument array."""


def call_together(phase: PhaseOnGraph, tables: Tables, arrays: Mapping[int, Any]) -> None:
    """The call as the runtime makes it, with all temporaries in one arena."""
    phase.call({k: x.ctypes.data for k, x in arrays.items()})


def after(module: ModuleOp | str, specification: str) -> ModuleOp:
    """A copy of a module (or of its text) that passes were run on, verified after each."""
    module = parse_module(module) if isinstance(module, str) else module.clone()
    for p in passes_of(specification):
        p.apply(Context(), module)
        module.verify()
    return module


FORMATS = {"sse": (16, "x86-64"), "avx": (32, "x86-64-v3"), "native": (64, "native")}
"""Vector bytes and instruction set of a compilation."""


@dataclass(frozen=True)
class Case:
    """One program: its phases on rows, the lowered ones, and C."""

    split: ModuleOp
    lowered: ModuleOp
    program: Program

    @staticmethod
    def of(
        text: str | ModuleOp,
        phases: str = TRAIN,
        *,
        lower: str = "lower-to-intra",
        schedule: str = FINE,
        vector_bytes: int = 64,
        march: str | None = None,
        sanitize: bool = False,
        target: str | None = None,
    ) -> Case:
        """Compile a program, for the target of the session where none is named. Raises what the
        passes and the tool chain raise.
        """
        split = after(text, phases)
        lowered = after(split, lower)
        plan = schedule.format(bytes=vector_bytes)
        record = target_named(target or default_target())
        fuse = f"fuse-traversals{{target={record.name}}}"
        final = after(lowered, f"{fuse},{plan},cut-stages,plan-memory")
        artifact = artifact_of(final, record)
        program = Program(artifact, march=march, sanitize=sanitize)
        return Case(split, lowered, program)

    def values(self, seed: int, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Random sets and rows for every phase, by name."""
        rng = np.random.default_rng(seed)
        return random_values([self.split, self.lowered], rng, sizes)

    def check(
        self, values: Mapping[str, Any], *, tolerance: float = 1e-9, call: Call = call_together
    ) -> dict[str, Any]:
        """C and the interpreter agree on every row that a phase gives; returns C's."""
        want = results_by_name(self.split, values)
        got = self.run(values, call=call)
        assert want.keys() <= got.keys()
        for name, expected in want.items():
            np.testing.assert_allclose(
                got[name], expected, rtol=tolerance, atol=tolerance, err_msg=name
            )
        return got

    def run(
        self,
        values: Mapping[str, Any],
        *,
        call: Call = call_together,
        carrier: Carrier | None = None,
    ) -> dict[str, Any]:
        """The rows that the phases of the C program give, by name; of one rank, if there is a
        carrier."""
        integers = {n: values[n] for n in self.program.structure_inputs if n in values}
        rows = {n: x for n, x in integers.items() if not isinstance(x, SetVal)}
        graph = self.program.on_graph(self.sets(values), rows, carrier=carrier)
        known = {**values, **graph.rows}
        out: dict[str, Any] = {}
        for name in PHASES:
            if name in graph.phases:
                got = run_phase(graph.phases[name], known, graph.tables, call)
                known |= got
                out |= got
        return out

    def sets(self, values: Mapping[str, Any]) -> dict[str, SetData]:
        """The caller's sets as the runtime has them."""
        func = functions(self.lowered)[STRUCTURE]
        given = {
            set_type(a).label: (set_type(a), values[n])
            for a, n in zip(func.body.block.args, argument_names(func), strict=True)
            if isinstance(a.type, SetType)
        }
        out: dict[str, SetData] = {}
        for label, (t, value) in given.items():
            maps = {
                k: MapData.of(
                    value.maps[k], given[m.codomain][1].n, what=k, partial="partial" in m.flags
                )
                for k, m in t.map_dict().items()
            }
            out[label] = SetData(value.n, maps, name=label)
        return out


def run_phase(
    phase: PhaseOnGraph, values: Mapping[str, Any], tables: Tables, call: Call
) -> dict[str, Any]:
    """One call of a C function on NumPy arrays."""
    arrays: dict[int, Any] = {}
    for b in phase.phase.inputs:
        x = np.ascontiguousarray(values[b.name], DTYPES[b.dtype])
        assert x.shape[1:] == b.row, (b, x.shape)
        arrays[b.slot] = x
    out: dict[str, Any] = {}
    for b in phase.phase.outputs:
        out[b.name] = np.full((phase.rows[b.slot], *b.row), FILL, DTYPES[b.dtype])
        arrays[b.slot] = out[b.name]
    call(phase, tables, arrays)
    return out
