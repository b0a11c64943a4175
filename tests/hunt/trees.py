"""Syntax trees of programs: what is dead in them, and second names."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeGuard


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


# ---------------------------------------------------------------- what nothing needs

OF_SHAPE = {"shape", "dtype", "ndim", "size", "numel", "dim"}
OF_SHAPE |= {"new_zeros", "new_ones", "new_full", "new_empty"}
"""Attributes and methods that read no number of their tensor."""
LIKE = {"zeros_like", "ones_like", "full_like", "empty_like", "len"}
"""Functions that read none of their first argument, besides the methods `.._as`."""
EDITING = {"inplace", "out", "max_norm"}
"""Arguments of calls that edit a tensor."""
FRESH = {"zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "clone"}
"""Functions and methods that give a tensor which nobody else has."""


def is_dead(text: str, line: int) -> bool:
    """Whether what stands on a line of a program is for nothing that the program gives: no number
    of it reaches what is returned, edited, kept, asserted or asked. (To read its shape takes no
    number of it.)"""
    tree = ast.parse(text)
    around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and holds(n, line)]
    if not around:  # what raised is not of the program: a backward
        return False
    statement = max(around, key=lambda n: n.lineno)
    acting = Acting(acting_modules(tree), fresh_names(tree))
    needed = needed_names(tree, acting)
    return is_passive(statement, acting) and not needed & names_set(statement)


@dataclass(frozen=True)
class Acting:
    """What tells whether a statement acts on others: the attributes whose modules edit what they
    are given, and the variables of tensors that nobody else has."""

    modules: set[str]
    fresh: set[str]


def holds(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or 0)


def needed_names(tree: ast.AST, acting: Acting) -> set[str]:
    """The names of what is returned, edited, kept, asserted or asked, and all that is made of."""
    needed = set[str]()
    passive: list[ast.Assign] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While):
            needed |= numbers_read(node.test)
        elif isinstance(node, ast.With):
            needed |= {n for item in node.items for n in numbers_read(item.context_expr)}
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            if is_passive(node, acting):
                passive.append(node)
            else:
                needed |= numbers_read(node)
    while found := [a for a in passive if needed & names_set(a)]:
        passive = [a for a in passive if a not in found]
        needed |= {n for a in found for n in numbers_read(a.value)}
    return needed


def is_passive(node: ast.stmt, acting: Acting) -> TypeGuard[ast.Assign]:
    """Whether a statement does nothing but give values to variables, which an edit of a tensor that
    nobody else has does too."""
    if not isinstance(node, ast.Assign) or not all(map(is_variable, node.targets)):
        return False
    calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
    acts = (edits(c, acting.fresh) or name_of(c.func) in acting.modules for c in calls)
    return not any(acts)


def is_variable(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(map(is_variable, target.elts))
    return isinstance(target, ast.Name)


def names_set(node: ast.Assign) -> set[str]:
    """The variables that get values, those of tensors that are edited too."""
    calls = (n for n in ast.walk(node.value) if isinstance(n, ast.Call) and edits(n, set()))
    return targets(node) | {x.id for c in calls if isinstance(x := edited_by(c), ast.Name)}


def targets(node: ast.Assign) -> set[str]:
    return {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def name_of(called: ast.expr) -> str:
    """`add_` of `x.add_` and of `add_`."""
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def edits(call: ast.Call, fresh: set[str]) -> bool:
    """Whether a call says that it edits a tensor that others have too, who have none of `fresh`."""
    flagged = any(isinstance(a, ast.Constant) and a.value is True for a in call.args)
    function = call.func.value if isinstance(call.func, ast.Attribute) else None
    flagged &= isinstance(function, ast.Name) and function.id in ("F", "nn")
    named = name_of(call.func).endswith("_") or any(k.arg in EDITING for k in call.keywords)
    return (named or flagged) and not is_fresh(edited_by(call), fresh)


def edited_by(call: ast.Call) -> ast.expr | None:
    """The tensor that a call edits, if it edits one."""
    out = [k.value for k in call.keywords if k.arg in ("out", "max_norm")]
    function = call.func.value if isinstance(call.func, ast.Attribute) else None
    if out or function is None:
        return None
    of_module = isinstance(function, ast.Name) and function.id in ("F", "nn", "torch")
    return next(iter(call.args), None) if of_module else function


def is_fresh(x: ast.expr | None, fresh: set[str]) -> bool:
    """Whether nobody else has a tensor: a new one, or one of these variables, edited or not."""
    if isinstance(x, ast.Name):
        return x.id in fresh
    if not isinstance(x, ast.Call):
        return False
    name = name_of(x.func)
    return name in FRESH or (name.endswith("_") and is_fresh(edited_by(x), fresh))


def fresh_names(tree: ast.AST) -> set[str]:
    """The variables whose only value is a new tensor. (Who else has it later has read them.)"""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for name in targets(node):
                values.setdefault(name, []).append(node.value)
        elif isinstance(node, ast.arg):
            values.setdefault(node.arg, []).append(ast.Name(node.arg))
    return {n for n, given in values.items() if all(is_fresh(x, set()) for x in given)}


def acting_modules(tree: ast.AST) -> set[str]:
    """The attributes whose modules edit what they are given, or keep statistics of it."""
    return {
        target.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if edits(node.value, set()) or name_of(node.value.func).startswith("BatchNorm")
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }


def numbers_read(tree: ast.AST) -> set[str]:
    """The names in a piece of a tree of which more than the shape is read."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    return {name for part in parts_read(tree) for name in numbers_read(part)}


def parts_read(tree: ast.AST) -> list[ast.AST]:
    """The parts of a piece of a tree without those whose shape alone it reads."""
    if isinstance(tree, ast.Attribute) and tree.attr in OF_SHAPE:
        return []
    if isinstance(tree, ast.Call):
        name = name_of(tree.func)
        skipped = tree.args[:1] if name in LIKE or name.endswith("_as") else []
        return [n for n in ast.iter_child_nodes(tree) if n not in skipped]
    return list(ast.iter_child_nodes(tree))
