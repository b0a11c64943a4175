"""What a training prints after an epoch, as a program without Python can print it: texts, the
epoch, and numbers of the step.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...codegen.standalone.description import Epochs, Line, NoProgram, OfEpoch, Piece, Value
from ...codegen.standalone.reports import of_epoch
from .form import Form
from .names import loads

_FORMAT = re.compile(r"0?\d*(\.\d+)?[dfeg]")
ALLOWED = (
    "a program without Python prints texts, the epoch and numbers of the step: "
    "`print(epoch, loss.item())`, all of it or where `epoch % 10 == 0`"
)


class Reports:
    """Reads the reports of a form. `names` are the local names of its setup, `value` gives the
    number of a name of the step, or None where it is none."""

    def __init__(
        self, form: Form, names: Mapping[str, Any], value: Callable[[str], Value | None]
    ) -> None:
        self.form, self.names, self.value = form, names, value

    def lines(self) -> list[Line]:
        """What is printed.

        Raises:
            ProgramError: something else is done behind the step, or behind the loop.
        """
        for statement in self.form.after:
            if not isinstance(statement, ast.Return):
                raise self.error(
                    statement,
                    "behind the loop a program without Python writes what it has learnt, and "
                    "nothing else is done: evaluate what `gnnc.load('trained')` gives",
                )
        return [line for s in self.form.reports for line in self._lines(s, None)]

    def epochs(self) -> Epochs:
        """The range that the loop runs over."""
        counted = self._evaluated(self.form.loop.iter)
        if not isinstance(counted, range):
            raise self.error(self.form.loop.iter, "the loop runs over a `range` of epochs")
        return Epochs(counted.start, counted.stop, counted.step)

    def error(self, at: ast.AST, message: str) -> Exception:
        return self.form.source.error(at, message)

    def _lines(self, statement: ast.stmt, when: OfEpoch | None) -> list[Line]:
        match statement:
            case ast.Expr(ast.Call(ast.Name("print"), args, keywords)):
                return [Line(tuple(self._printed(args, keywords)), when)]
            case ast.If(test, body, []) if when is None:
                only = self._of_epoch(test)
                return [line for s in body for line in self._lines(s, only)]
            case _:
                raise self.error(statement, ALLOWED)

    def _of_epoch(self, x: ast.expr) -> OfEpoch:
        """Arithmetic of the epoch and of numbers that the setup has."""
        if loads([x]) & {self.form.loss, *self.form.results}:
            raise self.error(x, ALLOWED)
        text = ast.unparse(_Folded(self._evaluated, self.form.epoch).visit(copy.deepcopy(x)))
        found = OfEpoch(text, self.form.epoch)
        try:
            of_epoch(found)
        except NoProgram:
            raise self.error(x, ALLOWED) from None
        return found

    def _printed(self, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> list[Piece]:
        words = {"sep": " ", "end": "\n"}
        for keyword in keywords:
            value = self._evaluated(keyword.value)
            if keyword.arg == "flush":
                continue
            if keyword.arg not in words or not isinstance(value, str):
                raise self.error(keyword.value, ALLOWED)
            words[keyword.arg] = value
        pieces: list[Piece] = []
        for i, x in enumerate(args):
            pieces += [Piece(words["sep"])] * bool(i) + self._pieces(x)
        return [*pieces, Piece(words["end"])]

    def _pieces(self, x: ast.expr) -> list[Piece]:
        if isinstance(x, ast.JoinedStr):
            return [p for part in x.values for p in self._pieces(part)]
        if isinstance(x, ast.FormattedValue):
            return self._formatted(x)
        read = loads([x])
        if not read & {self.form.epoch, self.form.loss, *self.form.results}:
            return [Piece(str(self._evaluated(x)))]
        return [self._number(x)]

    def _formatted(self, x: ast.FormattedValue) -> list[Piece]:
        spec = "" if x.format_spec is None else self._evaluated(x.format_spec)
        if not loads([x.value]) & {self.form.epoch, self.form.loss, *self.form.results}:
            return [Piece(format(self._evaluated(x.value), spec))]
        piece = self._number(x.value)
        if not spec:
            return [piece]
        if not _FORMAT.fullmatch(spec):
            raise self.error(x, "a number is formatted as `:4d`, `:.4f`, `:.3e` or `:g`")
        return [Piece(piece.what, spec)]

    def _number(self, x: ast.expr) -> Piece:
        if not loads([x]) & {self.form.loss, *self.form.results}:
            return Piece(self._of_epoch(x))
        match x:
            case ast.Call(ast.Attribute(ast.Name(name), "item"), [], []):
                value = self.value(name)
            case ast.Call(ast.Name("float"), [ast.Name(name)], []):
                value = self.value(name)
            case _:
                raise self.error(x, ALLOWED)
        if value is None:
            raise self.error(x, f"`{name}` is no single number that the step computes")
        return Piece(value)

    def _evaluated(self, x: ast.expr) -> Any:
        """What an expression gives that nothing of an epoch is in."""
        code = compile(
            ast.fix_missing_locations(ast.Expression(x)), self.form.source.filename, "eval"
        )
        return eval(code, self.form.source.function.__globals__, dict(self.names))


class _Folded(ast.NodeTransformer):
    """Puts the numbers in the place of what the epoch is not in."""

    def __init__(self, evaluated: Callable[[ast.expr], Any], epoch: str) -> None:
        self.evaluated, self.epoch = evaluated, epoch

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and self.epoch not in loads([node]):
            return ast.copy_location(ast.Constant(self.evaluated(node)), node)
        return self.generic_visit(node)
