"""Calls on cores that other programs use too: by all threads that they may use, and by one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from ..frontend.tools.children import Message
from ..frontend.tools.report import seconds_text

BUSY_RATIO = 1.5
"""How many times as long as on one thread a call should take at most."""
ENDLESS = "while True: pass"


@contextmanager
def busy(programs: int) -> Generator[None]:
    """So many programs beside this one, each of which never waits."""
    started = [subprocess.Popen([sys.executable, "-c", ENDLESS]) for _ in range(programs)]
    try:
        yield
    finally:
        for p in started:
            p.kill()
            p.wait()


def ratio(row: Message) -> float:
    """By how much the calls that may use all threads are slower, in the mean."""
    return row["all"] / row["one"]


def missed(result: Message) -> list[str]:
    """The figures that are asked for and not reached."""
    return [f"all / one {ratio(r):.2f}" for r in result["rows"] if ratio(r) > BUSY_RATIO]


def table_of(result: Message) -> tuple[str, list[list[str]]]:
    """The title and the rows of a result."""
    rows = [["nodes, edges", "programs beside", "all threads", "one thread", "/ one", "at most"]]
    for row in result["rows"]:
        size = f"{row['nodes']:,}, {row['edges']:,}"
        times = [seconds_text(row[name]) for name in ("all", "one")]
        rows.append([size, str(row["beside"]), *times, f"{ratio(row):.2f}", f"{BUSY_RATIO}"])
    title = "GraphSAGE, 2 layers, forward and backward without a loss on busy cores, mean: "
    return f"{title}{result['threads']} threads and one", rows
