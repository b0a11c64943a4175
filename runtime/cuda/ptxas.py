"""What `ptxas -v` says of kernels: registers, spills, memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '(\w+)' for '\w+'")
_OF = re.compile(r"Function properties for (\w+)")
_FRAME = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
)
_REGISTERS = re.compile(r"Used (\d+) registers")
_CUMULATIVE = re.compile(r"(\d+) bytes cumulative stack size")
_SHARED = re.compile(r"(\d+) bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")


@dataclass(frozen=True)
class Resources:
    """What one kernel takes: registers a thread, and bytes of spill stores and loads, of stack
    (a thread, with that of the functions it calls), of static shared memory (a block) and of
    constant banks, which newer architectures are not told for.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int
    constant: int


def resources(log: str) -> dict[str, Resources]:
    """The resources of every kernel in a log of `ptxas -v`, by name, in order of names. Functions
    that are called and not inlined have none of their own.
    """
    out: dict[str, Resources] = {}
    frames: dict[str, tuple[int, int, int]] = {}
    entry, of = "", ""
    for line in log.splitlines():
        if found := _ENTRY.search(line):
            entry = found[1]
        elif found := _OF.search(line):
            of = found[1]
        elif found := _FRAME.search(line):
            frames[of] = (int(found[1]), int(found[2]), int(found[3]))
        elif (found := _REGISTERS.search(line)) and entry:
            out[entry] = _of_line(line, int(found[1]), frames.get(entry, (0, 0, 0)))
            entry = ""
    return dict(sorted(out.items()))


def _of_line(line: str, registers: int, frame: tuple[int, int, int]) -> Resources:
    stack, stores, loads = frame
    return Resources(
        registers=registers,
        spill_stores=stores,
        spill_loads=loads,
        stack=max(stack, _bytes(_CUMULATIVE, line)),
        shared=_bytes(_SHARED, line),
        constant=_bytes(_CONSTANT, line),
    )


def _bytes(pattern: re.Pattern[str], line: str) -> int:
    return sum(int(n) for n in pattern.findall(line))
