"""Which names statements read and set."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


def loads(statements: Iterable[ast.AST]) -> set[str]:
    """The names that are read."""
    return {n.id for n in _names(statements) if isinstance(n.ctx, ast.Load)}


def stores(statements: Sequence[ast.AST]) -> list[str]:
    """The names that are set, in their order."""
    found = [n.id for n in _names(statements) if isinstance(n.ctx, ast.Store)]
    nodes = [n for s in statements for n in ast.walk(s)]
    return [*found, *(n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef))]


def carried(statements: Sequence[ast.stmt]) -> ast.Name | None:
    """A name that is read before it is set by the same statements, where they are run again."""
    every, known = set(stores(statements)), set[str]()
    for statement in statements:
        for n in _names([statement]):
            early = n.id in every and n.id not in known and n.id not in _own(statement)
            if early and (isinstance(n.ctx, ast.Load) or isinstance(statement, ast.AugAssign)):
                return n
        known |= set(stores([statement]))
    return None


def _own(statement: ast.stmt) -> set[str]:
    """Names that are the statement's own: of comprehensions and lambdas, and what a block sets."""
    own = {a.arg for n in ast.walk(statement) if isinstance(n, ast.arguments) for a in n.args}
    for n in ast.walk(statement):
        if isinstance(n, ast.comprehension):
            own |= set(stores([n.target]))
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
        own |= set(stores([statement]))
    return own


def _names(statements: Iterable[ast.AST]) -> list[ast.Name]:
    return [n for s in statements for n in ast.walk(s) if isinstance(n, ast.Name)]
