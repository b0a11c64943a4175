"""What a program prints after an epoch, as C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .description import Line, Piece, Value
from .names import C_TYPES, literal


def report(lines: Sequence[Line], values: Mapping[str, str]) -> list[str]:
    """The lines of C; `values` has the expressions of the buffers of results."""
    out: list[str] = []
    for line in lines:
        calls = " ".join(_piece(p, values) for p in line.pieces)
        out.append(calls if line.every == 1 else f"if (epoch % {line.every} == 0) {{ {calls} }}")
    return out


def _piece(piece: Piece, values: Mapping[str, str]) -> str:
    match piece.what:
        case str() as text:
            return f"fputs({literal(text)}, stdout);"
        case Value(result, elem):
            number = f"*(const {C_TYPES[elem]} *){values[result]}"
            if piece.format is not None:
                return _formatted(piece.format, number)
            if elem in ("f32", "f64"):
                return f"print_float({number});"
            if elem == "i1":
                return f"print_bool({number});"
            return f'printf("%" PRId64, (int64_t){number});'
        case None:
            return _formatted(piece.format or "d", "epoch")


def _formatted(spec: str, number: str) -> str:
    if spec[-1] == "d":
        return f'printf("%{spec[:-1]}" PRId64, (int64_t){number});'
    return f'printf("%{spec}", (double){number});'
