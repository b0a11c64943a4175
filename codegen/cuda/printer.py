"""Prints a lowered module as CUDA C++ and C: a few kernels a nest, one exported C function a phase
that launches them. Nests that do the same on other buffers share their kernels.
"""

from __future__ import annotations

from importlib.resources import files

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.bindings import ColumnsOp, OffsetsOp, root
from ...dialects.intra.remote import is_remote, of_one_rank
from ...dialects.intra.schedule import GridAttr
from ...dialects.intra.steps import phases, steps
from ...dialects.intra.syntax import length
from ..common.exchange_code import EXCHANGE, Exchange, ExchangeCode, comm_text
from ..common.host import Printed, describe, is_size, nest_arguments
from ..common.launches import describe_nest, summary
from ..common.phase_host import PhaseHost, places_name, pointer
from ..common.scalars import ctype_of
from ..common.shared_functions import Functions
from ..common.writer import Writer
from .device_text import device_text
from .kernel_code import Kernel, KernelCode, joined
from .pieces import Pieces

ARRAYS = (
    "launcher launch, void *const *kernels, void *stream, char *ws, const int64_t *n, "
    "void *const *b"
)
"""The parameters of a phase's function."""


def print_module(module: ModuleOp) -> Printed:
    """Print every phase of a lowered and scheduled module.

    Raises:
        PassFailedException: the module holds no phase, a nest without a grid, or a step of another
            kind.
    """
    kernels = Kernels()
    printed = [PhasePrinter(func, kernels) for func in phases(module)]
    if not printed:
        raise PassFailedException(
            "nothing to print: no function has intra ops (run lower-to-intra)"
        )
    header = (files("gnnc.codegen.cuda") / "launch.h").read_text() + comm_text()
    host = "\n".join([header, *(p.text() for p in printed)])
    device = "\n".join(kernels.texts)
    return Printed(host, [p.host.phase for p in printed], device, kernels.names, device_text())


class Kernels:
    """The kernels of one module so far."""

    def __init__(self) -> None:
        self.functions = Functions()
        self.names: list[str] = []
        self.texts: list[str] = []

    def number(self, name: str, kernel: Kernel, parameters: list[tuple[str, str]]) -> int:
        """The number of a kernel, or of one before it that does the same."""
        body = f"/* {kernel.threads} {kernel.shared} */\n{kernel.body}"
        known = self.functions.same(name, parameters, body)
        if known != name:
            return self.names.index(known)
        bounds = f"__launch_bounds__({kernel.threads}, {kernel.resident})"
        head = f'extern "C" __global__ void {bounds} {name}({", ".join(map("".join, parameters))})'
        self.texts.append(f"{head}\n{{\n{kernel.body}}}\nGNNC_EXPORT({name})\n")
        self.names.append(name)
        return len(self.names) - 1


class PhasePrinter:
    """Prints the function of one phase, and its kernels."""

    def __init__(self, func: FuncOp, kernels: Kernels) -> None:
        self.host = PhaseHost(func)
        self.kernels = kernels
        self.calls = Writer(1)
        stop = "if (status == 0 && comm->failed) return 0;"  # the caller raises what failed
        exchange = ExchangeCode(self.host, goes_on="status == 0", after=stop)
        found = self.gangs(func)
        for gang in found:
            if isinstance(gang, list):
                self.launches(gang)
            else:
                exchange.step(gang, self.calls)
        if not all(isinstance(gang, list) for gang in found):
            self.host.out.line(f"gnnc_comm *comm = b[{len(self.host.phase.buffers)}];")
            self.host.phase.buffers.append(exchange.described)

    def gangs(self, func: FuncOp) -> list[list[rows.TraverseOp] | Exchange]:
        """The steps of a phase, nests together that one launch computes.

        Raises:
            PassFailedException: a step that is not known, or rows that lie between others.
        """
        if any(isinstance(op, ColumnsOp) for op in func.body.block.ops):
            raise PassFailedException(
                f"rows of @{self.host.phase.name} lie between others, which reads of whole vectors "
                "of CUDA C++ know nothing of: leave out `interleave-rows`"
            )
        out: list[list[rows.TraverseOp] | Exchange] = []
        for step in steps(func):
            if isinstance(step, EXCHANGE):
                out.append(step)
                continue
            if not isinstance(step, rows.TraverseOp):
                raise PassFailedException(
                    f"{step.name} in @{self.host.phase.name}: CUDA C++ has no such step"
                )
            joins = isinstance(step.schedule, GridAttr) and step.schedule.joins.data
            if out and joins and isinstance(last := out[-1], list):
                last.append(step)
            else:
                out.append([step])
        return out

    def text(self) -> str:
        out = Writer()
        with out.block(f"GNNC_PHASE int gnnc_{self.host.phase.name}({ARRAYS})"):
            out.line("int status = 0;")
            out.lines += self.host.out.lines
            out.line("(void)launch, (void)kernels, (void)stream, (void)ws, (void)n, (void)b;")
            out.lines += self.calls.lines
            out.line("return status;")
        return out.text()

    # ------------------------------------------------------------ nests

    def launches(self, gang: list[rows.TraverseOp]) -> None:
        """Launch the kernels of a nest, or of several that share one."""
        phase, calls = self.host.phase, self.calls
        names = self.host.names
        codes = [KernelCode(n, {v: names[v] for v in nest_arguments(n)}) for n in gang]
        kernels = codes[0].run() if len(codes) == 1 else [joined(codes)]
        first = f"{phase.name}_{len(phase.kernels)}{summary(gang[0])}"
        for nest, code in zip(gang, codes, strict=True):
            name = f"{phase.name}_{len(phase.kernels)}{summary(nest)}"
            phase.kernels.append(name)
            phase.launches.append(describe_nest(name, nest))
            phase.workspace = max(phase.workspace, code.workspace.bytes)
        with calls.block(""):
            calls.line(f"/* {first} */")
            self.shares(codes[0])
            for kernel in kernels:
                self.launch(first + kernel.suffix, kernel, self.parameters(gang))

    def shares(self, code: KernelCode) -> None:
        """How many blocks there are, and which rows they take."""
        calls, numbers = self.calls, code.numbers
        if code.offsets is None:
            size, cost = code.size, numbers["row_cost"]
            given = f"{size}, {size} * {max(cost, 1)}, {numbers['grain']}, {numbers['chunks']}"
            calls.line(f"const int64_t chunks = chunk_count({given});")
            return
        offsets = code.offsets.owner
        assert isinstance(offsets, OffsetsOp)
        table = self.table(
            "cuts", offsets, {k: numbers[k] for k in ("row_cost", "grain", "chunks")}
        )
        calls.line(f"int64_t *cuts = (int64_t *)b[{table}];")
        calls.line(f"const int64_t chunks = {self.host.count(table)} - 1;")
        for found in code.pieces:
            self.pieces(found, code)

    def pieces(self, found: Pieces, code: KernelCode) -> None:
        """The pieces of a nest's group, and memory for what they are reduced to."""
        calls, offsets = self.calls, found.segment.offsets.owner
        assert isinstance(offsets, OffsetsOp)
        kind, piece = code.piece_table(found.segment)
        table = self.table(kind, offsets, {"piece": piece})
        calls.line(f"int64_t *{found.table} = (int64_t *)b[{table}];")
        calls.line(f"const int64_t {found.count} = {self.host.count(table)};")
        for r, name in zip(found.segment.results, found.partials, strict=True):
            c = ctype_of(r)
            rows_of = {"kind": "temporary", "domain": None, "rows_of": table}
            self.host.phase.buffers.append(rows_of | {"row": [length(r)], "bytes": c.bytes})
            place = len(self.host.phase.buffers) - 1
            calls.line(f"{c.memory} *{name} = ({c.memory} *)b[{place}];")

    def table(self, kind: str, offsets: OffsetsOp, numbers: dict[str, int]) -> int:
        """The place of a table that is made once a graph, of groups."""
        found = {**describe(offsets), "kind": kind, **numbers}
        buffers = self.host.phase.buffers
        if found not in buffers:
            buffers.append(found)
        return buffers.index(found)

    def parameters(self, gang: list[rows.TraverseOp]) -> list[tuple[str, str, str]]:
        """The sizes and buffers of nests: type, name, and what the caller gives."""
        arguments = dict.fromkeys(v for nest in gang for v in nest_arguments(nest))
        written = {v for nest in gang for v in nest.writes()}
        out: list[tuple[str, str, str]] = []
        for v in arguments:
            name = self.host.names[v]
            if is_remote(v):
                out.append(("const void *const *", name, name))
                if of_one_rank(v):
                    places = places_name(name)
                    out.append(("const uint64_t *__restrict__ ", places, places))
                else:
                    out.append(("const int64_t ", "ranks", self.host.ranks()))
            elif is_size(v):
                out.append(("const int64_t ", name, name))
            elif root(v) in written:
                out.append((pointer(v), name, name))
            else:
                out.append((f"const {pointer(v)}__restrict__ ", name, name))
        return list(dict.fromkeys(out))

    def launch(self, name: str, kernel: Kernel, arguments: list[tuple[str, str, str]]) -> None:
        """Launch a kernel where it has blocks."""
        given = [*kernel.parameters, *arguments]
        number = self.kernels.number(name, kernel, [(kind, x) for kind, x, _ in given])
        calls = self.calls
        with calls.block(f"if ({kernel.blocks} > 0 && status == 0)"):
            places = ", ".join(f"(void *)&{x}" for _, _, x in given) or "0"
            calls.line(f"void *arguments[] = {{{places}}};")
            grid = f"(unsigned)({kernel.blocks}), 1, 1, {kernel.threads}, 1, 1"
            calls.line(
                f"status = launch(kernels[{number}], {grid}, {kernel.shared}, stream, "
                "arguments, 0);"
            )
