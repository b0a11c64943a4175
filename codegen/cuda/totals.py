"""Totals: reductions over all rows of a nest. Teams keep their part in registers, a block combines
those of its teams in order, and a kernel behind the nest those of all blocks in order."""

from __future__ import annotations

from ...dialects.intra import rows
from ...dialects.intra.schedule import WARP
from ...dialects.intra.syntax import length
from ..common.products import Text
from ..common.scalars import START, combined, ctype_of, start_text
from ..common.writer import Writer
from .places import Memory, Place, Single, Spread
from .rooms import Shared, Workspace
from .team import Team


class Totals:
    """The totals of one nest; `places` is where the threads have their parts."""

    def __init__(self, team: Team, workspace: Workspace, chunks: int) -> None:
        self.team, self.workspace, self.chunks = team, workspace, chunks
        self.places: dict[rows.TotalOp, Place] = {}
        self.partials: dict[rows.TotalOp, str] = {}

    def declare(self, out: Writer) -> None:
        """What reductions begin with."""
        for op, place in self.places.items():
            c, n = ctype_of(op.value), length(op.value)
            start = start_text(START[op.kind.data], c)
            self.partials[op] = self.workspace.take(c, n * self.chunks * self.parts(place))
            match place:
                case Single(name):
                    out.line(f"{c.name} {name} = {start};")
                case Spread(name, _, tile):
                    count = self.team.turns(n, tile) * tile
                    out.line(f"{c.name} {name}[{count}];")
                    out.line("#pragma unroll")
                    out.line(f"for (int k = 0; k < {count}; ++k) {name}[k] = {start};")
                case Memory(name):
                    at = f"(chunk * {self.team.count} + team) * {n}"
                    out.line(f"{c.name} *const {name} = {self.partials[op]} + {at};")
                    step = self.team.lanes
                    out.line(f"for (int k = lane; k < {n}; k += {step}) {name}[k] = {start};")
                    self.team.sync(out)
                case _:
                    raise AssertionError(place)

    def parts(self, place: Place) -> int:
        """What a block hands on: one part, or one of each team where these have no registers for
        it."""
        return self.team.count if isinstance(place, Memory) else 1

    def finish(self, out: Writer, shared: Shared) -> None:
        """Hand on what the block has."""
        for op, place in self.places.items():
            c, n, kind = ctype_of(op.value), length(op.value), op.kind.data
            into = f"{self.partials[op]} + chunk * {n}"
            if isinstance(place, Memory):
                continue
            if self.team.count == 1:
                self.store(out, op, place, into, None)
                continue
            name = f"all{len(out.lines)}"
            at = shared.take(n, c)
            out.line("__syncthreads();")
            if at is None:
                at = into
            out.line(f"{c.memory} *const {name} = {at};")
            with out.block(f"for (int turn = 0; turn < {self.team.count}; ++turn)"):
                with out.block("if (team == turn)"):
                    self.store(out, op, place, name, kind)
                out.line("__syncthreads();")
            if at is not into:
                step = self.team.threads
                copy = f"({into})[k] = {name}[k];"
                out.line(f"for (int k = threadIdx.x; k < {n}; k += {step}) {copy}")

    def store(
        self, out: Writer, op: rows.TotalOp, place: Place, into: str, kind: str | None
    ) -> None:
        """Write the team's part; with `kind` the first team does, and others combine theirs."""
        c = ctype_of(op.value)

        def line(at: str, x: str) -> None:
            more = x if kind is None else f"turn ? {combined(kind, at, x, c)} : {x}"
            out.line(f"{at} = {more};")

        match place:
            case Single(name):
                with out.block("if (lane == 0)"):
                    line(f"({into})[0]", name)
            case Spread(name, n, tile):
                count = self.team.turns(n, tile)
                out.line("#pragma unroll")
                with out.block(f"for (int k = 0; k < {count * tile}; ++k)"):
                    turn = f"(k / {tile} * {self.team.lanes} + lane)"
                    out.line(f"const int f = {turn} * {tile} + k % {tile};")
                    with out.block(f"if (f < {n})"):
                        line(f"({into})[f]", f"{name}[k]")
            case _:
                raise AssertionError(place)

    def combine(self, out: Writer, text: Text, size: str) -> list[int]:
        """Combine the parts of all blocks in order; returns how many columns there are. Of no rows,
        extremes are 0."""
        found: list[int] = []
        parts = max(self.team.threads, WARP) // WARP
        for op, place in self.places.items():
            c, n, kind = ctype_of(op.value), length(op.value), op.kind.data
            partial, start = self.partials[op], start_text(START[kind], c)
            with out.block(""):
                out.line(f"{c.name} *const room = ({c.name} *)shared_memory;")
                out.line(f"const int e = blockIdx.x * {WARP} + threadIdx.x % {WARP};")
                out.line(f"const int part = threadIdx.x / {WARP};")
                out.line(f"{c.name} s = {start};")
                all_parts = f"chunks * {self.parts(place)}"
                bounds = f"c = {all_parts} * part / {parts}; c < {all_parts} * (part + 1) / {parts}"
                with out.block(f"if (e < {n})"):
                    term = combined(kind, "s", f"{partial}[c * {n} + e]", c)
                    out.line(f"for (int64_t {bounds}; ++c) s = {term};")
                out.line("room[threadIdx.x] = s;")
                out.line("__syncthreads();")
                with out.block(f"if (part == 0 && e < {n})"):
                    term = combined(kind, "s", f"room[q * {WARP} + threadIdx.x]", c)
                    out.line(f"for (int q = 1; q < {parts}; ++q) s = {term};")
                    value = f"{size} ? s : 0" if kind in ("max", "min") else "s"
                    out.line(f"{text(op.buffer)}[e] = {value};")
                out.line("__syncthreads();")
            found.append(n)
        return found
