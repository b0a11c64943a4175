"""The source of a function: its syntax tree, in which places are those of the file."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Mapping
from typing import Any

from .errors import ProgramError


class Source:
    """A function with its tree.

    Raises:
        TypeError: it is no function written with `def`, or its source is not to be had.
    """

    def __init__(self, function: object, reader: str = "gnnc.program") -> None:
        """`reader` is the decorator that messages name."""
        self.reader = reader
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"{reader} takes a function, not {type(function).__name__}")
        self.function = function
        self.name = function.__name__
        self.filename = function.__code__.co_filename
        try:
            lines, _ = inspect.findsource(function)
        except OSError as error:
            raise TypeError(
                f"{reader} reads the source of {self.name}, and finds none: write it in a file"
            ) from error
        self.lines = lines
        self.tree = self._find(function.__code__.co_firstlineno)

    def _find(self, first: int) -> ast.FunctionDef:
        """The definition whose first line (of its decorators, if any) is this one."""
        for node in ast.walk(ast.parse("".join(self.lines))):
            if isinstance(node, ast.FunctionDef):
                start = min(d.lineno for d in (*node.decorator_list, node))
                if start == first and node.name == self.name:
                    return node
        raise TypeError(f"{self.reader} takes a function written with `def`, {self.name} is none")

    def error(self, at: ast.AST, message: str) -> ProgramError:
        """The error at a place of the tree."""
        line, column = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
        end_line, end_column = getattr(at, "end_lineno", line), getattr(at, "end_col_offset", None)
        text = self.lines[line - 1]
        if end_line != line or end_column is None:
            end_line, end_column = line, len(text.rstrip("\n").encode())
        start, end = self._characters(text, column), self._characters(text, end_column)
        return ProgramError(message, (self.filename, line, start, text, end_line, end))

    @staticmethod
    def _characters(text: str, column: int) -> int:
        """Python counts columns of trees in bytes from 0, those of errors in characters from 1."""
        return len(text.encode()[:column].decode(errors="replace")) + 1

    def outer(self) -> Mapping[str, Any]:
        """What names mean that the function does not define itself."""
        found = inspect.getclosurevars(self.function)
        return {**self.function.__globals__, **found.nonlocals}
