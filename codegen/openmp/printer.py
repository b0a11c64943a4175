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
from ..common.host import Phase, Printed, is_size, nest_arguments
from ..common.launches import describe_nest, summary
from ..common.phase_host import PhaseHost, pointer
from ..common.shared_functions import Functions
from ..common.writer import Writer
from .kernel_code import KernelCode


def prelude(vector_bytes: int) -> str:
    """The support code, for one vector width."""
    folder = files("gnnc.codegen.openmp")
    headers = ("prelude.h", "vector_math.h", "vector_power.h")
    text = "\n".join((folder / name).read_text() for name in headers)
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
    functions = Functions()
    for func in phases(module):
        printer = PhasePrinter(func, functions)
        text.append(printer.text())
        found.append(printer.phase)
        widths |= printer.widths
    if len(widths) > 1:
        raise PassFailedException("nests of one module are scheduled for different vector widths")
    if not found:
        raise PassFailedException(
            "nothing to print: no function has intra ops (run lower-to-intra)"
        )
    return Printed(prelude(widths.pop() if widths else 16) + "\n" + "\n".join(text), found)


class PhasePrinter:
    """Prints one phase: its kernels, then the function that runs them in order. `functions` are
    those of the module so far.
    """

    def __init__(self, func: FuncOp, functions: Functions) -> None:
        self.func = func
        self.functions = functions
        host = PhaseHost(func)
        self.phase, self.names, self.host = host.phase, host.names, host.out
        self.widths: set[int] = set()
        self.kernels: list[str] = []
        for step in steps(func):
            if not isinstance(step, rows.TraverseOp):
                raise PassFailedException(
                    f"{step.name} in @{self.phase.name}: C with OpenMP has no such step"
                )
            self.kernel(step)

    def text(self) -> str:
        out = Writer()
        head = (
            f"void gnnc_{self.phase.name}(int threads, char *ws, const int64_t *n, void *const *b)"
        )
        out.line(f"LAPS({self.phase.name}, {max(len(self.phase.kernels), 1)})")
        with out.block(head):
            out.line("START_LAPS;")
            out.lines += self.host.lines
            out.line("(void)threads, (void)ws, (void)n, (void)b;")
        return "\n".join([*self.kernels, out.text()])

    def kernel(self, nest: rows.TraverseOp) -> None:
        name = f"{self.phase.name}_{len(self.phase.kernels)}{summary(nest)}"
        arguments = nest_arguments(nest)
        code = KernelCode(nest, {v: self.names[v] for v in arguments})
        self.widths.add(code.schedule.vector_bytes)
        body = code.body()
        written = {op.buffer for op in nest.walk() if isinstance(op, rows.WRITERS)}
        parameters = [("int ", "threads"), ("char *", "ws")]
        for v in arguments:
            const = "" if v in written else "const "
            kind = "const int64_t " if is_size(v) else f"{const}{pointer(v)}restrict "
            parameters.append((kind, self.names[v]))
        known = self.functions.same(name, parameters, body)
        if known == name:
            head = f"static void {name}({', '.join(map(''.join, parameters))})"
            self.kernels.append(f"{head}\n{{\n    (void)ws;\n{body}}}\n")
        call = ", ".join(["threads", "ws", *(self.names[v] for v in arguments)])
        self.host.line(f"{known}({call});")
        self.host.line(f"LAP({self.phase.name}, {len(self.phase.kernels)});")
        self.phase.kernels.append(name)
        self.phase.launches.append(describe_nest(name, nest))
        self.phase.workspace = max(self.phase.workspace, code.workspace.bytes)
