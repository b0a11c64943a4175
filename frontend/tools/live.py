"""How trainings go, told while they run: on a terminal in one line that changes, else in lines."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from .children import Message, Tell
from .report import bytes_text, seconds_text

LINE_SECONDS = 5.0
"""How often there is a line where no terminal shows the one that changes."""
_LOOKS = "{desc} {n_fmt}/{total_fmt} |{bar:8}| {elapsed}<{remaining}{postfix}"


@contextmanager
def shown(label: str, epochs: int, stream: TextIO) -> Generator[Tell]:
    """Takes what the training `label` tells of its progress, and shows it."""
    if not stream.isatty():
        yield _lines(label, epochs, stream)
        return
    from tqdm import tqdm  # a dependency of training alone

    with tqdm(
        total=epochs, desc=label, file=stream, leave=False, dynamic_ncols=True, bar_format=_LOOKS
    ) as bar:

        def show(progress: Message) -> None:
            bar.set_postfix_str(_text(progress), refresh=False)
            bar.n = progress["epoch"]  # set, as a training that is resumed does not begin at 0
            bar.refresh()

        bar.refresh()
        yield show


def _lines(label: str, epochs: int, stream: TextIO) -> Tell:
    """Writes a line where the last is long enough ago, and one for the last epoch."""
    last = time.monotonic()

    def show(progress: Message) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_SECONDS or progress["epoch"] == epochs:
            last = now
            place = f"{label}: epoch {progress['epoch']}/{epochs}"
            print(f"{place}, {_text(progress)}", file=stream, flush=True)

    return show


def _text(progress: Message) -> str:
    """Loss, median epoch, accuracies, memory: a narrow terminal cuts off what is last."""
    parts = [f"loss {progress['loss']:.4f}", f"{seconds_text(progress['epoch_seconds'])}/epoch"]
    if (accuracies := progress["accuracies"]) is not None:
        train, validation, test = accuracies
        parts.append(f"accuracy train {train:.3f} val {validation:.3f} test {test:.3f}")
    parts.append(bytes_text(progress["memory"]))
    return ", ".join(parts)
