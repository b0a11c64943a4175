"""What a program prints after an epoch, as C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .description import Line, OfEpoch, Piece, SizeText, Value
from .names import C_TYPES, literal
from .placement import Placement
from .sizes import c_size


def report(lines: Sequence[Line], values: Mapping[str, str], placement: Placement) -> list[str]:
    """The lines of C; `values` has the expressions of the buffers of results."""
    out: list[str] = []
    for line in lines:
        calls = " ".join(_piece(p, values, placement) for p in line.pieces)
        out.append(calls if line.when is None else f"if ({of_epoch(line.when)}) {{ {calls} }}")
    return out


def of_epoch(what: OfEpoch) -> str:
    """The C expression of a number that the epoch gives.

    Raises:
        NoProgram: it is no arithmetic of whole numbers.
    """
    return c_size(SizeText(what.text, {what.name: (0, 0)}), lambda array, dimension: "epoch")


def _piece(piece: Piece, values: Mapping[str, str], placement: Placement) -> str:
    match piece.what:
        case str() as text:
            return f"fputs({literal(text)}, stdout);"
        case Value(result, elem):
            number = placement.number(values[result], C_TYPES[elem])
            if piece.format is not None:
                return _formatted(piece.format, number)
            if elem in ("f32", "f64"):
                return f"print_float({number});"
            if elem == "i1":
                return f"print_bool({number});"
            return f'printf("%" PRId64, (int64_t){number});'
        case OfEpoch() as number:
            return _formatted(piece.format or "d", of_epoch(number))


def _formatted(spec: str, number: str) -> str:
    if spec[-1] == "d":
        return f'printf("%{spec[:-1]}" PRId64, (int64_t)({number}));'
    return f'printf("%{spec}", (double)({number}));'
