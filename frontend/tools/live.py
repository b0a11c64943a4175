"""How trainings go, told while they run."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from .children import Message, Tell
from .progress import counted
from .report import bytes_text, seconds_text


@contextmanager
def shown(label: str, epochs: int, stream: TextIO) -> Generator[Tell]:
    """Takes what the training `label` tells of its progress, and shows it."""
    with counted(label, "epoch", epochs, stream) as count:
        yield lambda progress: count(progress["epoch"], _text(progress))


def _text(progress: Message) -> str:
    """Loss, median epoch, accuracies, memory: a narrow terminal cuts off what is last."""
    parts = [f"loss {progress['loss']:.4f}", f"{seconds_text(progress['epoch_seconds'])}/epoch"]
    if (accuracies := progress["accuracies"]) is not None:
        train, validation, test = accuracies
        parts.append(f"accuracy train {train:.3f} val {validation:.3f} test {test:.3f}")
    parts.append(bytes_text(progress["memory"]))
    return ", ".join(parts)
