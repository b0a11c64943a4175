"""Prints a lowered module as C with OpenMP: one static function a nest, one exported function a
phase. Nests that do the same on other buffers share one (codegen/common/shared_functions.py).
"""

from __future__ import annotations

from importlib.resources import files

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.steps import phases, steps
from ..common.exchange_code import EXCHANGE, PARAMETER, ExchangeCode, comm_text
from ..common.host import Phase, Printed, is_size, mark_passed, nest_arguments
from ..common.phase_host import PhaseHost, pointer
from ..common.shared_functions import Functions
from ..common.writer import Writer
from .kernel_code import KernelCode


def prelude(vector_bytes: int, exchanges: bool = False) -> str:
    """The support code, for one vector width, with or without that of ranks."""
    folder = files("gnnc.codegen.openmp")
    headers = ["prelude.h", "lanes.h", "dropout.h", "row_ends.h", "truth_values.h"]
    headers += ["vector_math.h", "vector_power.h"]
    headers += ["poll.h"] * exchanges
    texts = [(folder / name).read_text() for name in headers]
    if exchanges:
        texts.insert(-1, comm_text())
    text = "\n".join(texts)
    return f"#define VECTOR_BYTES {vector_bytes}\n{text}"


def print_module(module: ModuleOp) -> Printed:
    """Print every phase of a lowered and scheduled module.

    Raises:
        PassFailedException: the module holds no phase, a nest without a schedule, or a step of
            another kind.
    """
    found: list[Phase] = []
    text: list[str] = []
    widths: set[int] = set()
    exchanges = False
    functions = Functions()
    for func in phases(module):
        printer = PhasePrinter(func, functions)
        text.append(printer.text())
        found.append(printer.phase)
        widths |= printer.widths
        exchanges |= printer.exchanges
    if len(widths) > 1:
        raise PassFailedException("nests of one module are scheduled for different vector widths")
    if not found:
        raise PassFailedException(
            "nothing to print: no function has intra ops (run lower-to-intra)"
        )
    mark_passed(found)
    head = prelude(widths.pop() if widths else 16, exchanges)
    return Printed(head + "\n" + "\n".join(text), found)


class PhasePrinter:
    """Prints one phase: its kernels, then the function that runs them in order, with the messages
    between them."""

    def __init__(self, func: FuncOp, functions: Functions) -> None:
        self.host = PhaseHost(func, functions)
        self.phase, self.names = self.host.phase, self.host.names
        self.widths: set[int] = set()
        self.kernels: list[str] = []
        order = steps(func)
        self.exchanges = any(isinstance(step, EXCHANGE) for step in order)
        self.exchange = ExchangeCode(self.host, after="SKIP_LAP;")
        if self.exchanges:
            self.host.out.line(f"gnnc_comm *comm = b[{len(self.phase.buffers)}];")
            self.phase.buffers.append(self.exchange.described)
        for k, step in enumerate(order):
            if isinstance(step, EXCHANGE):
                self.exchange.step(step, self.host.out)
            elif isinstance(step, rows.TraverseOp):
                self.kernel(step, k)
            else:
                raise PassFailedException(
                    f"{step.name} in @{self.phase.name}: C with OpenMP has no such step"
                )

    def text(self) -> str:
        out = Writer()
        name, arrays = self.phase.name, "int threads, const int64_t *n, void *const *b"
        out.line(f"LAPS({name}, {max(len(self.phase.kernels), 1)})")
        with out.block(f"void gnnc_{name}({arrays})"):
            out.line("START_LAPS;")
            out.lines += self.host.out.lines
            out.line("(void)threads, (void)n, (void)b;")
        return "\n".join([*filter(None, self.kernels), out.text()])

    def kernel(self, nest: rows.TraverseOp, step: int) -> None:
        arguments = nest_arguments(nest)
        polls = self.exchange.polls
        code = KernelCode(nest, {v: self.names[v] for v in arguments}, polls=polls)
        self.widths.add(code.schedule.vector_bytes)
        body = code.body()
        written = {op.buffer for op in nest.walk() if isinstance(op, rows.WRITERS)}
        parameters = [("int ", "threads")]
        for v in arguments:
            const = "" if v in written else "const "
            kind = "const int64_t " if is_size(v) else f"{const}{pointer(v)}restrict "
            parameters.append((kind, self.names[v]))
        if polls:
            parameters.append(PARAMETER)
        scratch, given = self.host.scratch(nest, code.scratch, step)
        parameters += [*scratch, *code.numbers.parameters]
        given |= code.numbers.given
        self.kernels.append(self.host.step(nest, parameters, body, self.host.out, given))
