"""C names and literals for what a program has: every name of a kind is another one."""

from __future__ import annotations

import math
from collections.abc import Sequence

TYPES = {"f32": "F32", "f64": "F64", "i32": "I32", "i64": "I64", "i1": "I1"}
C_TYPES = {"f32": "float", "f64": "double", "i32": "int32_t", "i64": "int64_t", "i1": "uint8_t"}
BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "i1": 1}


class CNames:
    """Identifiers with a prefix for texts."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._used: set[str] = set()

    def of(self, prefix: str, text: str) -> str:
        """The identifier of a text: the same for the same text."""
        if (prefix, text) not in self._known:
            stem = prefix + "".join(c if c.isascii() and c.isalnum() else "_" for c in text)
            name, k = stem, 1
            while name in self._used:
                k += 1
                name = f"{stem}_{k}"
            self._used.add(name)
            self._known[prefix, text] = name
        return self._known[prefix, text]


def literal(text: str) -> str:
    """A text as a C string."""
    out: list[str] = []
    for byte in text.encode():
        c = chr(byte)
        plain = c.isascii() and c.isprintable() and c not in '"\\?'
        out.append(c if plain else f"\\{byte:03o}")
    return f'"{"".join(out)}"'


def number(value: float | int | bool, elem: str = "f64") -> str:
    """A number as a C constant."""
    if elem in ("f32", "f64"):
        x = float(value)
        if math.isnan(x):
            return "NAN"
        if math.isinf(x):
            return "INFINITY" if x > 0 else "-INFINITY"
        return repr(x)
    n = int(value)
    return f"(-INT64_C({-n - 1}) - 1)" if n < 0 else f"INT64_C({n})"


def numbers(values: Sequence[int], kind: str = "int64_t") -> str:
    """An array of constants, NULL where there are none."""
    return f"({kind}[]){{{', '.join(map(str, values))}}}" if values else "NULL"


def keys(names: Sequence[str]) -> str:
    """Names of maps as the library takes them: a space behind each."""
    return literal("".join(f"{n} " for n in names))
