"""Teams: the threads that compute one row together, a part of a warp or a whole block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...dialects.intra.schedule import WARP
from ..common.c_types import CType
from ..common.writer import Writer
from .rooms import VECTOR

HELD = 8
"""Tiles of a row that a thread keeps in registers, at most."""
Combine = Callable[[str, str], str]
"""The expression of a reduction with one more number."""


@dataclass(frozen=True)
class Team:
    """`lanes` of the `threads` of a block; kernels have the names `team`, `lane` and `mask`."""

    threads: int
    lanes: int

    @property
    def whole(self) -> bool:
        """Whether it is the block, of more than a warp."""
        return self.lanes > WARP

    @property
    def count(self) -> int:
        """Teams of a block."""
        return self.threads // self.lanes

    def declare(self, out: Writer) -> None:
        """The thread's place."""
        out.line(f"const int team = threadIdx.x / {self.lanes}, lane = threadIdx.x % {self.lanes};")
        out.line("(void)team, (void)lane;")
        if not self.whole:
            ones = "0xffffffffu" if self.lanes == WARP else f"{(1 << self.lanes) - 1}u"
            shift = f"threadIdx.x % {WARP} / {self.lanes} * {self.lanes}"
            out.line(f"const unsigned mask = {ones} << ({shift});")
            out.line("(void)mask;")

    def sync(self, out: Writer) -> None:
        """Wait for the others, and see what they wrote."""
        if self.whole:
            out.line("__syncthreads();")
        elif self.lanes > 1:
            out.line("__syncwarp(mask);")

    def tile(self, length: int, element_bytes: int) -> int:
        """Neighbouring numbers of a row that a thread takes at once: as many as it can load, but
        so that all threads have some."""
        for tile in (4, 2):
            fits = length % tile == 0 and tile * element_bytes <= VECTOR
            if fits and length // tile >= self.lanes:
                return tile
        return 1

    def turns(self, length: int, tile: int) -> int:
        """Tiles of a row that a thread has."""
        return -(-length // (tile * self.lanes))

    def reduce(
        self, out: Writer, name: str, c: CType, combine: Combine, over: int, room: str
    ) -> None:
        """Combines a variable over groups of `over` neighbouring threads, in a tree: each of them
        has the result. `room` is memory for a number of each warp, where the team is a block."""
        width = min(over, WARP)
        if width > 1:
            mask = "0xffffffffu" if self.whole else "mask"
            with out.block(f"for (int d = {width // 2}; d; d /= 2)"):
                out.line(f"const {c.name} other = __shfl_xor_sync({mask}, {name}, d, {WARP});")
                out.line(f"{name} = {combine(name, 'other')};")
        if over > WARP:
            out.line(f"if (lane % {WARP} == 0) {room}[lane / {WARP}] = {name};")
            out.line("__syncthreads();")
            out.line(f"{name} = {room}[0];")
            with out.block(f"for (int q = 1; q < {over // WARP}; ++q)"):
                out.line(f"{name} = {combine(name, f'{room}[q]')};")
            out.line("__syncthreads();")
