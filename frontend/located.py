"""Where in a file an operation came from, and errors that say so."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, VerifyException


class LocatedParser(Parser):
    """A parser that gives every operation without a `loc(..)` the place it was read from.

    `line_offset` is the number of lines in front of `text` in the file it is a part of.
    """

    def __init__(self, ctx: Context, text: str, name: str, line_offset: int = 0):
        super().__init__(ctx, text, name)
        self._name = StringAttr(name)
        self._line_offset = line_offset
        self._line_starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]

    def _location(self, position: int) -> FileLineColLoc:
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return FileLineColLoc(self._name, IntAttr(line + self._line_offset), IntAttr(column))

    def parse_operation(self) -> Operation:
        location = self._location(self.pos)
        try:
            operation = super().parse_operation()
        except VerifyException as error:  # an attribute or type that does not verify
            locate(error, location)
            raise
        if operation.location == UNKNOWN_LOC:
            operation.location = location
        return operation


def locate(error: DiagnosticException, location: FileLineColLoc) -> None:
    """Puts the place in front of the message; an error that has one already keeps it."""
    if getattr(error, "location", None) is None:
        file, line, column = location.filename.data, location.line.data, location.column.data
        error.args = (f"{file}:{line}:{column}: {error}",)
        setattr(error, "location", location)


@contextmanager
def located_errors() -> Generator[None]:
    """Errors that leave the block say which operation they are about, where that is known."""
    try:
        yield
    except DiagnosticException as error:
        operation = _operation_of(error.__traceback__)
        location = operation and _location_of(operation)
        if location is not None:
            locate(error, location)
        raise


def _operation_of(traceback: TracebackType | None) -> Operation | None:
    """The operation that the innermost function of a traceback was working on.

    Neither xDSL's verification nor its passes record it in the exception, but nearly all of them
    hold it as `self` (an operation's own methods), `op` or `func`.
    """
    found: Operation | None = None
    while traceback is not None:
        names = traceback.tb_frame.f_locals
        for name in ("func", "self", "op"):
            if isinstance(names.get(name), Operation):
                found = names[name]
        traceback = traceback.tb_next
    return found


def _location_of(operation: Operation) -> FileLineColLoc | None:
    """Its own location, or that of the innermost operation around it that has one."""
    current: Operation | None = operation
    while current is not None:
        if isinstance(current.location, FileLineColLoc):
            return current.location
        current = current.parent_op()
    return None
