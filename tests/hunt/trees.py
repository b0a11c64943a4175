"""Syntax trees of programs: what is dead in them, and second names."""

from __future__ import annotations

import ast


def bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements inside functions."""
    out: list[list[ast.stmt]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.With | ast.If | ast.For):
            out.append(node.body)
            if isinstance(node, ast.If) and node.orelse:
                out.append(node.orelse)
    return out


def tidied(tree: ast.Module) -> bool:
    """Without what is dead and without second names."""
    changed = without_dead(tree)
    for body in bodies(tree):
        place = 0
        while place < len(body):
            if renamed(tree, body, place):
                changed = True
            else:
                place += 1
    return changed


def without_dead(tree: ast.Module) -> bool:
    """Assignments left out whose targets nothing reads."""
    changed, again = False, True
    while again:
        read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and loaded(n)}
        read |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and loaded(n)}
        again = False
        for body in bodies(tree):
            kept = [s for s in body if not isinstance(s, ast.Assign) or wanted(s, read)]
            again |= len(kept) < len(body)
            body[:] = kept
        changed |= again
    return changed


def loaded(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def wanted(node: ast.Assign, read: set[str]) -> bool:
    names = [n for t in node.targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return any(
        n.id in read
        if isinstance(n, ast.Name)
        else not isinstance(n, ast.Attribute) or n.attr in read
        for n in names
    )


def renamed(tree: ast.Module, body: list[ast.stmt], place: int) -> bool:
    """`v = w` left out: w in the place of v."""
    node = body[place]
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Name) or target.id == node.value.id:
        return False
    old, new = target.id, node.value.id
    del body[place]
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and n.id == old:
            n.id = new
    return True


def is_dead(text: str, line: int) -> bool:
    """Whether what stands on a line of a program is for nothing that the program gives."""
    tree = ast.parse(text)
    without_dead(tree)
    return not any(s.lineno <= line <= (s.end_lineno or 0) for body in bodies(tree) for s in body)
