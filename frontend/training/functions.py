"""Functions of the parts of a training, made from its own syntax tree: places in tracebacks are
those of the user's file.

What the step reads of the data (`data.x`, or a local name) becomes an argument of it, by the values
that names have once the setup has run.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from .form import Form
from .names import stores

STEP = "__step__"
"""The name of the compiled step in the function of the loop; no program has it."""


@dataclass(frozen=True)
class Functions:
    """`loss` computes the loss of arrays, whose names are `inputs` with their values; `train` runs
    the loop with a step that is called as `loss`."""

    loss: Callable[..., Any]
    inputs: dict[str, Any]
    train: Callable[[Callable[..., Any]], Any]


def run_setup(form: Form, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What the local names are in front of the loop, for a call's arguments.

    Raises:
        TypeError: the arguments are not those of the function.
    """
    function = form.source.function
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    result = _call("locals", [])
    outer = _outer(form)
    setup = _made(form, outer, bound.arguments, [*form.setup, ast.Return(result)])
    found: dict[str, Any] = setup(*bound.arguments.values())
    return {**outer, **found}


def functions_of(
    form: Form, names: Mapping[str, Any], is_array: Callable[[object], bool]
) -> Functions:
    """The functions of a training whose setup has left these local names; what `is_array` becomes
    an argument of the loss."""
    arrays = _Arrays(form, names, is_array)
    step = [arrays.visit(copy.deepcopy(s)) for s in form.step]
    results = [ast.Name(n, ast.Load()) for n in (form.loss, *form.results)]
    returned = ast.Tuple(list[ast.expr](results), ast.Load()) if form.results else results[0]
    given = list(arrays.found)
    loss = _made(form, names, given, [*step, ast.Return(returned)])
    targets = [ast.Name(n, ast.Store()) for n in (form.loss, *form.results)]
    target = ast.Tuple(list[ast.expr](targets), ast.Store()) if form.results else targets[0]
    call = ast.Assign([target], _call(STEP, list(arrays.expressions.values())))
    loop = copy.copy(form.loop)
    loop.body = [*form.modes, ast.copy_location(call, form.step[0]), *form.reports]
    written = [n for n in dict.fromkeys(stores([loop, *form.after])) if n in names]
    begin = [
        ast.Assign([ast.Name(n, ast.Store())], ast.Name(f"{n}__", ast.Load())) for n in written
    ]
    own = {f"{n}__" if n in written else n: x for n, x in names.items()}
    train = _made(form, own, [STEP], [*begin, loop, *form.after])
    return Functions(loss, arrays.found, train)


class _Arrays(ast.NodeTransformer):
    """Replaces what a step reads of arrays by names: `found` has their values, `expressions` what
    they are in the loop."""

    def __init__(
        self, form: Form, names: Mapping[str, Any], is_array: Callable[[object], bool]
    ) -> None:
        self.form, self.names, self.is_array = form, names, is_array
        self.own = set(stores(form.step))
        self.found: dict[str, Any] = {}
        self.expressions: dict[str, ast.expr] = {}
        self.texts: dict[str, str] = {}

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and self._is_path(node):
            text = ast.unparse(node)
            if text not in self.texts:
                value = self._value(node)
                if not self.is_array(value):
                    return self.generic_visit(node)
                self._note(node, text, value)
            return ast.copy_location(ast.Name(self.texts[text], ast.Load()), node)
        return self.generic_visit(node)

    def _is_path(self, node: ast.AST) -> bool:
        """Whether it is a name of the setup or the module, or attributes and items of one."""
        match node:
            case ast.Name(name, ast.Load()):
                known = name in self.names or name in self.form.source.function.__globals__
                return known and name not in self.own
            case ast.Attribute(value, _, ast.Load()):
                return self._is_path(value)
            case ast.Subscript(value, ast.Constant(str()), ast.Load()):
                return self._is_path(value)
            case _:
                return False

    def _value(self, node: ast.expr) -> Any:
        """What a path gives, or None: a part of a method's name (`x.sum`) is looked at, too."""
        code = _compiled(self.form, ast.Expression(node), "eval")
        try:
            return eval(code, self.form.source.function.__globals__, dict(self.names))
        except (AttributeError, KeyError):
            return None  # as part of the step it raises this at its place

    def _note(self, node: ast.expr, text: str, value: Any) -> None:
        words = _words(node)
        name = words[-1]
        taken = {*self.found, *self.names, *self.own} - ({text} if text == name else set())
        if name in taken:
            name = "_".join(words)
        while name in taken:
            name += "_"
        self.texts[text] = name
        self.found[name] = value
        self.expressions[name] = node


def _words(node: ast.expr) -> list[str]:
    """The names of a path, from its root: `data["paper"].x` has three."""
    match node:
        case ast.Attribute(value, name):
            return [*_words(value), name]
        case ast.Subscript(value, ast.Constant(key)):
            return [*_words(value), "".join(c if c.isalnum() else "_" for c in str(key))]
        case ast.Name(name):
            return [name]
        case _:
            raise AssertionError(node)


def _outer(form: Form) -> dict[str, Any]:
    """The names of enclosing functions."""
    return dict(inspect.getclosurevars(form.source.function).nonlocals)


def _call(function: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), args, [])


def _made(
    form: Form, names: Mapping[str, Any], given: Sequence[str] | Mapping[str, Any], body: list[Any]
) -> Any:
    """A function of `given` names with this body, within which `names` have their values."""
    shown = [n for n in names if n not in given]
    inner = _definition(form, form.source.name, list(given), body)
    outer = _definition(form, "made", shown, [inner, ast.Return(ast.Name(inner.name, ast.Load()))])
    code = _compiled(form, ast.Module([outer], []), "exec")
    found: dict[str, Any] = {}
    exec(code, form.source.function.__globals__, found)
    return found["made"](*(names[n] for n in shown))


def _definition(form: Form, name: str, given: list[str], body: list[Any]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(n) for n in given], None, [], [], None, [])
    definition = copy.copy(form.source.tree)
    definition.name, definition.args, definition.body = name, arguments, body
    definition.decorator_list, definition.returns = [], None
    return definition


def _compiled(form: Form, tree: Any, mode: str) -> CodeType:
    return compile(ast.fix_missing_locations(tree), form.source.filename, mode)
