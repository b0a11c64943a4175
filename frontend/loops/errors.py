"""Mistakes in a program, at their place in the user's file."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ProgramError(SyntaxError):
    """A function that is no program, with file, line, column and a suggestion. Python shows it as
    its own syntax errors, with the line and a mark under it."""


def suggestion(name: str, known: Iterable[str], what: str) -> str:
    """Which of the known names is meant by one that is not, for the end of a message."""
    names = sorted(set(known))
    if near := get_close_matches(name, names, 1):
        return f"did you mean `{near[0]}`?"
    return f"{what}: {', '.join(names)}" if names else f"{what}: none"
