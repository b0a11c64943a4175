"""How far a loop is, told while it runs: on a terminal in one line that changes, else in lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TextIO

LINE_SECONDS = 5.0
"""How often there is a line where no terminal shows the one that changes."""
_LOOKS = "{desc} {n_fmt}/{total_fmt} |{bar:8}| {elapsed}<{remaining}{postfix}"

Count = Callable[[int, str], None]
"""Is given how many are done, and a text about the last."""


@contextmanager
def counted(label: str, unit: str, total: int, stream: TextIO | None) -> Generator[Count]:
    """Shows how many of `total` are done: a bar of tqdm's; lines where that or a terminal is
    missing.

    Args:
        unit: what is counted, as "epoch".
        stream: None: nothing is shown.
    """
    if stream is None:
        yield lambda done, text: None
        return
    if not stream.isatty() or find_spec("tqdm") is None:
        yield _lines(label, unit, total, stream)
        return
    from tqdm import tqdm  # not a dependency of the compiler

    with tqdm(
        total=total, desc=label, file=stream, leave=False, dynamic_ncols=True, bar_format=_LOOKS
    ) as bar:

        def show(done: int, text: str) -> None:
            bar.set_postfix_str(text, refresh=False)
            bar.n = done  # set, as what is resumed does not begin at 0
            bar.refresh()

        bar.refresh()
        yield show


def _lines(label: str, unit: str, total: int, stream: TextIO) -> Count:
    """Writes a line where the last is long enough ago, and one for the last of all."""
    last = time.monotonic()

    def show(done: int, text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_SECONDS or done == total:
            last = now
            place = f"{label}: {unit} {done}/{total}"
            print(f"{place}, {text}" if text else place, file=stream, flush=True)

    return show
