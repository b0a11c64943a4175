"""Makes a failing program small: parts of its text are left out for as long as it fails alike.

Nothing here knows the grammar: candidates are made from the syntax tree, and what no longer runs in
eager is rejected before anything is compiled.
"""

from __future__ import annotations

import ast
import copy
import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .judge import observed, once
from .program import Argument, Call, Program
from .trees import bodies, renamed, tidied

Fails = Callable[[Program], bool]


def shrink(program: Program, kind: str, compiled: bool = False, seconds: float = 90.0) -> Program:
    """The smallest program found within the time that still differs in this kind."""
    end = time.process_time() + seconds

    def fails(p: Program) -> bool:
        return time.process_time() < end and still_fails(p, kind, compiled)

    before = None
    while before != str(program) and time.process_time() < end:
        before = str(program)
        for candidates in (fewer_calls, fewer_results, fewer_statements, plainer, fewer_arguments):
            program = improve(program, candidates, fails)
    return program


def still_fails(program: Program, kind: str, compiled: bool) -> bool:
    try:
        seen = observed(program, program.dtype)
    except Exception:  # no program any more
        return False
    names = {o.raised[1] for o in seen if o.raised}
    if names & {"NameError", "UnboundLocalError", "AttributeError", "SyntaxError"}:
        return False
    if kind.startswith("raises nothing"):
        if not names:
            return False
    elif all(o.raised for o in seen):
        return False
    try:
        return kind in once(program, compiled).kinds()
    except Exception:
        return False


def improve(
    program: Program, candidates: Callable[[Program], Iterator[Program]], fails: Fails
) -> Program:
    """Go through the candidates once; from each that fails the others are made anew, and what was
    tried before it is not tried again."""
    place, tried, left = 0, {str(program)}, candidates(program)
    while (p := next(left, None)) is not None:
        place += 1
        if str(p) not in tried and fails(p):
            program, place = p, place - 1
            left = itertools.islice(candidates(program), place, None)
        tried.add(str(p))
    return program


# ---------------------------------------------------------------- calls and settings


def fewer_calls(program: Program) -> Iterator[Program]:
    calls = program.calls
    if len(calls) > 1:
        for c in calls:
            yield replace(program, calls=(c,))
        for k in range(len(calls)):
            yield replace(program, calls=calls[:k] + calls[k + 1 :])
    for k, c in enumerate(calls):
        for other in plainer_calls(c):
            yield replace(program, calls=(*calls[:k], other, *calls[k + 1 :]))
    for name, usual in (("dtype", "float64"), ("values", "normal")):
        if program.settings.get(name, usual) != usual:
            yield replace(program, settings={**program.settings, name: usual})


def plainer_calls(call: Call) -> Iterator[Call]:
    """Each with less to it, so that no two lead to each other."""
    if call.after != "none":
        yield Call(call.sizes, after="none")
        if call.after != "backward":
            yield Call(call.sizes)
    if call.before:
        yield replace(call, before="")
    if not call.train:
        yield replace(call, train=True)
    for letter, n in call.sizes.items():
        if n > 3:
            yield replace(call, sizes={**call.sizes, letter: 3})


def fewer_arguments(program: Program) -> Iterator[Program]:
    tree = ast.parse(program.code)
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for name in program.arguments:
        if name in used:
            continue
        smaller = copy.deepcopy(tree)
        for node in ast.walk(smaller):
            if isinstance(node, ast.FunctionDef):
                node.args.args = [a for a in node.args.args if a.arg != name]
        rest = {k: v for k, v in program.arguments.items() if k != name}
        letters = {str(d) for a in rest.values() for d in (*a.dims, a.below)}
        calls = tuple(
            replace(c, sizes={k: v for k, v in c.sizes.items() if k in letters})
            for c in program.calls
        )
        yield replace(program, code=ast.unparse(smaller) + "\n", arguments=rest, calls=calls)
    for name, a in program.arguments.items():
        for flag in sorted(a.flags):
            plain = Argument(a.dims, a.kind, a.below, a.flags - {flag})
            yield replace(program, arguments={**program.arguments, name: plain})


# ---------------------------------------------------------------- statements


def edited(program: Program, change: Callable[[ast.Module], bool]) -> Iterator[Program]:
    """The program with its tree changed, where `change` says that it changed something."""
    tree = ast.parse(program.code)
    if change(tree):
        for body in bodies(tree):
            if not body:
                body.append(ast.Pass())
        yield replace(program, code=ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def kept_statement(node: ast.stmt) -> bool:
    return isinstance(node, ast.Return) or "super().__init__" in ast.unparse(node)


def fewer_statements(program: Program) -> Iterator[Program]:
    yield from edited(program, tidied)
    lengths = [len(b) for b in bodies(ast.parse(program.code))]
    for b in range(len(lengths)):
        size = max(1, lengths[b] // 2)
        while size:
            for start in range(max(0, lengths[b] - size), -1, -size):
                if size > 1:
                    yield from edited(program, lambda t, b=b, s=start, n=size: lopped(t, b, s, n))
                yield from edited(program, lambda t, b=b, s=start, n=size: cut(bodies(t)[b], s, n))
            size //= 2
        for place in range(lengths[b]):
            yield from edited(program, lambda t, b=b, p=place: unwrapped(bodies(t)[b], p))
            yield from edited(program, lambda t, b=b, p=place: renamed(t, bodies(t)[b], p))


def lopped(tree: ast.Module, b: int, start: int, count: int) -> bool:
    """Statements left out, with what was for them alone and with their names: each assigned name is
    the last tensor before them."""
    body = bodies(tree)[b]
    gone = body[start : start + count]
    before = [s.targets[0] for s in body[:start] if isinstance(s, ast.Assign)]
    names = [t.id for t in before if isinstance(t, ast.Name)]
    if not cut(body, start, count):
        return False
    targets = {
        n.id
        for s in gone
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and n.id in targets and names:
            n.id = names[-1]
    tidied(tree)
    return True


def cut(body: list[ast.stmt], start: int, count: int) -> bool:
    gone = [s for s in body[start : start + count] if not kept_statement(s)]
    body[start : start + count] = [s for s in body[start : start + count] if kept_statement(s)]
    return bool(gone) and not all(isinstance(s, ast.Pass) for s in gone)


def unwrapped(body: list[ast.stmt], place: int) -> bool:
    """A block replaced by what is in it."""
    node = body[place]
    if isinstance(node, ast.With | ast.If):
        body[place : place + 1] = node.body
        return True
    return False


def fewer_results(program: Program) -> Iterator[Program]:
    tree = ast.parse(program.code)
    count = sum(isinstance(n, ast.Return) for n in ast.walk(tree))
    for k in range(count):
        value = returned(tree, k).value
        items = len(parts(value)) if value is not None else 0
        for i in range(items):
            yield from edited(program, lambda t, k=k, i=i: only_result(t, k, i, True))
            yield from edited(program, lambda t, k=k, i=i: only_result(t, k, i, False))
        for i in range(items if items > 2 else 0):
            yield from edited(program, lambda t, k=k, i=i: without_result(returned(t, k), i))


def returned(tree: ast.AST, k: int) -> ast.Return:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Return)][k]


def parts(x: ast.expr | None) -> list[ast.expr]:
    if isinstance(x, ast.Tuple | ast.List):
        return x.elts
    return x.values if isinstance(x, ast.Dict) else []


def only_result(tree: ast.Module, k: int, i: int, tidy: bool) -> bool:
    """One item returned; with `tidy` also without what only the others needed."""
    node = returned(tree, k)
    node.value = parts(node.value)[i]
    if tidy:
        tidied(tree)
    return True


def without_result(node: ast.Return, i: int) -> bool:
    if isinstance(node.value, ast.Dict):
        del node.value.keys[i], node.value.values[i]
    elif isinstance(node.value, ast.Tuple | ast.List):
        del node.value.elts[i]
    return True


# ---------------------------------------------------------------- expressions


def plainer(program: Program) -> Iterator[Program]:
    """Expressions replaced by a part of themselves; keywords left out."""
    count = len(expressions(ast.parse(program.code)))
    for k in range(count):
        tree = ast.parse(program.code)
        for i in range(len(operands(expressions(tree)[k]))):
            yield from edited(program, lambda t, k=k, i=i: replaced(t, k, i))
        node = expressions(tree)[k]
        if isinstance(node, ast.Call):
            for i in range(len(node.keywords)):
                yield from edited(program, lambda t, k=k, i=i: without_keyword(t, k, i))


def expressions(tree: ast.AST) -> list[ast.expr]:
    """The expressions of the functions that compute."""
    out: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            inside = (n for s in node.body for n in ast.walk(s))
            out += [n for n in inside if isinstance(n, ast.expr)]
    return out


def operands(x: ast.expr) -> list[ast.expr]:
    """The parts of an expression that could stand for it, most likely tensors."""
    found: list[Any] = []
    if isinstance(x, ast.Call):
        found = [*x.args, *(k.value for k in x.keywords)]
        found += [x.func.value] if isinstance(x.func, ast.Attribute) else []
    elif isinstance(x, ast.BinOp):
        found = [x.left, x.right]
    elif isinstance(x, ast.IfExp):
        found = [x.body, x.orelse]
    elif isinstance(x, ast.UnaryOp):
        found = [x.operand]
    elif isinstance(x, ast.Attribute | ast.Subscript) and not isinstance(x.ctx, ast.Store):
        found = [x.value]
    elif isinstance(x, ast.List | ast.Tuple):
        return []
    return [f for f in found if not isinstance(f, ast.Constant)]


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def replaced(tree: ast.Module, k: int, i: int) -> bool:
    old = expressions(tree)[k]
    _Swap(old, operands(old)[i]).visit(tree)
    return True


def without_keyword(tree: ast.Module, k: int, i: int) -> bool:
    node = expressions(tree)[k]
    assert isinstance(node, ast.Call)
    del node.keywords[i]
    return True


# ---------------------------------------------------------------- classes


def signature(program: Program, kind: str) -> str:
    """The class of a small failing program: what differs, and the operations it is made of."""
    code = program.code
    words = set(re.findall(r"(?:F|torch|nn)\.\w+|\.\w+\(|[A-Z]\w+Conv\w*|\w+\(", code))
    words -= {"torch.nn", "nn.Module", ".__init__(", "super(", "forward(", "function(", "Model("}
    plain = {w.strip(".(").split(".")[-1] for w in words} - {"torch", "nn", "F", "__init__"}
    marks = {m for m in ("inplace", "no_grad", "if ", "[", "+=", "*=", "self.") if m in code}
    return f"{kind} | {' '.join(sorted(plain | marks))}"
