"""Text with indentation, and names for values: what every printer needs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class Writer:
    """Lines of C, indented by the open blocks."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self.depth = depth
        self._names = 0

    def line(self, text: str = "") -> None:
        """One line at the current depth."""
        self.lines.append("    " * self.depth + text if text else "")

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """`head { ... }`"""
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def name(self, stem: str) -> str:
        """A name not used before by this writer."""
        self._names += 1
        return f"{stem}{self._names}"

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
