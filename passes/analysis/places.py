"""Where in the user's code an op comes from, as far as passes have kept that."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException


@contextmanager
def placed(op: Operation) -> Generator[None]:
    """What is refused of an op says where that is, if it is known."""
    try:
        yield
    except PassFailedException as error:
        if (place := place_of(op)) is None:
            raise
        raise PassFailedException(f"{error} ({place})") from error


def place_of(op: Operation) -> str | None:
    """`file:line` of an op, or of the nearest of those that it is computed from; None where none
    knows. What a pass makes has no place of its own."""
    todo, seen = [op], {op}
    for x in todo:
        if isinstance(x.location, FileLineColLoc):
            return f"{x.location.filename.data}:{x.location.line.data}"
        owners = dict.fromkeys(v.owner for v in x.operands)
        new = [o for o in owners if isinstance(o, Operation) and o not in seen]
        seen.update(new)
        todo += new
    return None
