"""Nests that do the same on other buffers share one C function.

A model with many node types and relations repeats its nests; the C compiler, which takes most of
the time, sees each of them once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_DERIVED = "_total"
"""Ends the names of locals that are called after a parameter."""


Parameters = Sequence[tuple[str, str]]
"""Pairs of type and name."""


class Functions:
    """The functions of one module so far."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def same(self, name: str, parameters: Parameters, body: str) -> str:
        """The function that has the same text but for the names of its parameters; the first time
        that is `name`.
        """
        return self.names.setdefault(_numbered(parameters, body), name)


def _numbered(parameters: Parameters, body: str) -> str:
    """The text of a function with numbers, which no C identifier is, for its parameters."""
    number = {name: f"${k}" for k, (_, name) in enumerate(parameters)}

    def renamed(word: re.Match[str]) -> str:
        stem = word[0].removesuffix(_DERIVED)
        return number.get(word[0]) or number.get(stem, stem) + word[0][len(stem) :]

    types = ",".join(kind for kind, _ in parameters)
    return f"{types}\n{re.sub(r'[A-Za-z_][A-Za-z_0-9]*', renamed, body)}"
