"""Plans of memory for small graphs: one for all of about one size, so that no batch costs a plan of
its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .layout import BytesOf, Layout, Places, Rows

FEW = 1 << 15
"""Rows in all, up to which a graph is small: a plan takes as long as the kernels of one that is."""
KEPT = 256
"""Plans of a phase that are kept."""

Spent = tuple[int, ...]
"""The places of inputs that a call may write over."""


class Plans:
    """The plans of a phase, which takes `workspace` bytes of scratch memory."""

    def __init__(self, layout: Layout, workspace: int) -> None:
        self.layout, self.workspace = layout, workspace
        self._rows = {rows[0]: rows for rows in layout.rows}
        self._kept: dict[tuple[Spent, tuple[int, ...], tuple[int, ...]], Places] = {}

    def of(
        self, counts: Sequence[int], lengths: Mapping[int, int], bytes_of: BytesOf, spent: Spent
    ) -> Places:
        """Where temporaries lie on a graph whose domains have so many rows, and tables so many.
        Those of a small graph have room for about a sixteenth more than they take, at most."""
        if sum(counts) <= FEW:
            found = self._about(counts, lengths, spent)
            if self._fits(found, bytes_of):
                return found
        return self.layout.placed(bytes_of, self.workspace, spent)

    def _about(self, counts: Sequence[int], lengths: Mapping[int, int], spent: Spent) -> Places:
        """The plan for these sizes, rounded up."""
        many = tuple([about(n) for n in counts])
        long = tuple([about(n) for n in lengths.values()])
        key = spent, many, long
        if (found := self._kept.get(key)) is None:
            of_table = dict(zip(lengths, long, strict=True))

            def bytes_of(rows: Rows) -> int:
                _, domain, of, size = rows
                return size * (many[domain] if of is None else of_table[of])

            found = self.layout.placed(bytes_of, self.workspace, spent)
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[key] = found
        return found

    def _fits(self, found: Places, bytes_of: BytesOf) -> bool:
        """Whether what lies in the memory of an output or input lies within it: that is exactly as
        long as it has to be."""
        if not found.lent:
            return True
        ends = {room: bytes_of(self._rows[lender]) for room, lender in found.lent}
        return all(
            offset + bytes_of(self._rows[k]) <= ends[room]
            for k, room, offset in found.within
            if room in ends
        )


def about(count: int) -> int:
    """A number of rows that numbers from about a sixteenth less on share."""
    step = 1 << max(count.bit_length() - 5, 0)
    return -(-count // step) * step
