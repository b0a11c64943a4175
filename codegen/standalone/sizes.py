"""Sizes: Python's integer arithmetic as C."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .description import NoProgram, SizeText

_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_BINARY: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_FUNCTIONS: dict[type[ast.operator], str] = {ast.FloorDiv: "floor_div", ast.Mod: "floor_mod"}
_CHOICES = {"max": ">", "Max": ">", "min": "<", "Min": "<"}


def c_size(size: SizeText, dimension: Callable[[int, int], str]) -> str:
    """The C expression of a size; `dimension` gives that of a dimension of an array.

    Raises:
        NoProgram: it is no arithmetic of integers.
    """

    def text(node: ast.expr) -> str:
        match node:
            case ast.Constant(bool() | int() as value):
                return f"INT64_C({int(value)})"
            case ast.Name(name) if name in size.names:
                place = size.names[name]
                return f"INT64_C({place})" if isinstance(place, int) else dimension(*place)
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                return f"({text(left)} {_BINARY[type(op)]} {text(right)})"
            case ast.BinOp(left, op, right) if type(op) in _FUNCTIONS:
                return f"{_FUNCTIONS[type(op)]}({text(left)}, {text(right)})"
            case ast.UnaryOp(ast.USub(), operand):
                return f"(-{text(operand)})"
            case ast.UnaryOp(ast.Not(), operand):
                return f"(!{text(operand)})"
            case ast.BoolOp(op, values):
                word = " && " if isinstance(op, ast.And) else " || "
                return f"({word.join(map(text, values))})"
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARED:
                return f"({text(left)} {_COMPARED[type(op)]} {text(right)})"
            case ast.Call(ast.Name(name), [left, right], []) if name in _CHOICES:
                a, b = text(left), text(right)
                return f"({a} {_CHOICES[name]} {b} ? {a} : {b})"
            case _:
                raise NoProgram(f"the size {size.text} is no arithmetic of whole numbers")

    return text(ast.parse(size.text, mode="eval").body)
