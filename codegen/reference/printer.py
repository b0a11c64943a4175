"""Prints a lowered module as plain C99: one static function with one loop nest a step, one exported
function a phase. There are no threads, no vectors and no blocks, so a schedule says nothing here.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.steps import Step, phases, steps
from ..common.headers import header_text
from ..common.host import Phase, Printed, is_size, nest_arguments
from ..common.phase_host import PhaseHost, pointer
from ..common.shared_functions import Functions
from ..common.writer import Writer
from .nest_code import NestCode


def print_module(module: ModuleOp) -> Printed:
    """Print every phase of a lowered module.

    Raises:
        PassFailedException: the module holds no phase, or an op that has no C.
    """
    functions = Functions()
    printed = [print_phase(func, functions) for func in phases(module)]
    if not printed:
        raise PassFailedException(
            "nothing to print: no function has intra ops (run lower-to-intra)"
        )
    header = header_text("gnnc.codegen.reference", "reference.h")
    return Printed("\n".join([header, *(text for text, _ in printed)]), [p for _, p in printed])


def print_phase(func: FuncOp, functions: Functions) -> tuple[str, Phase]:
    """The functions of the steps, and the one that runs them. `functions` are those printed so
    far."""
    host = PhaseHost(func, functions)
    phase, arrays = host.phase, "int threads, const int64_t *n, void *const *b"
    calls, out = Writer(1), Writer()
    kernels = [print_step(step, k, host, calls) for k, step in enumerate(steps(func))]
    out.line(f"LAPS({phase.name}, {max(len(kernels), 1)})")
    with out.block(f"void gnnc_{phase.name}({arrays})"):
        out.line("(void)threads, (void)n, (void)b;")
        out.lines += host.out.lines
        out.line("START_LAPS;")
        out.lines += calls.lines
    return "\n".join([*filter(None, kernels), out.text()]), phase


def print_step(step: Step, number: int, host: PhaseHost, calls: Writer) -> str:
    """The function of a step, empty where an earlier one does the same; its call goes to `calls`,
    and what the caller must know of it to the phase."""
    assert isinstance(step, rows.TraverseOp), step.name  # the record has no other kind
    arguments = nest_arguments(step)
    code = NestCode(step, {v: host.names[v] for v in arguments})
    body = code.body()
    scratch, given = host.scratch(step, code.scratch, number)
    parameters = [*((kind(step, v), host.names[v]) for v in arguments), *scratch]
    return host.step(step, parameters, body, calls, given)


def kind(nest: rows.TraverseOp, v: SSAValue) -> str:
    """The C type of a parameter of a nest's function."""
    if is_size(v):
        return "const int64_t "
    written = {op.buffer for op in nest.walk() if isinstance(op, rows.WRITERS)}
    return pointer(v) if v in written else f"const {pointer(v)}"
