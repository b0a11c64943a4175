"""The form of a training: its source split into setup, step, reports and what follows the loop.

The form is torch's usual one: a loop over epochs at the top level of the function, in which a loss
is computed, `loss.backward()` makes the gradients of it and `optimizer.step()` uses them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..loops.source import Source
from .names import carried, loads, stores

MODES = ("train", "eval")
"""Methods of a module that say what its dropout and statistics do."""
CLIPS = {"clip_grad_norm_": "clip_grad_norm", "clip_grad_value_": "clip_grad_value"}
"""Functions of `torch.nn.utils` that may stand behind `backward`: the option of `train_step`."""
USUAL = "`optimizer.zero_grad()`, a loss, `loss.backward()`, `optimizer.step()`"


@dataclass(frozen=True)
class Form:
    """The parts of a training.

    `setup` stands in front of the loop, `modes` sets modules to training at the top of it, `step`
    computes the loss, `reports` follows the update, `after` the loop. `clips` are the bounds for
    gradients by the option of `train_step`. `results` are names of `step` that later parts read.
    """

    source: Source
    setup: list[ast.stmt]
    loop: ast.For
    epoch: str
    modes: list[ast.stmt]
    step: list[ast.stmt]
    loss: str
    optimizer: str
    clips: dict[str, ast.expr]
    reports: list[ast.stmt]
    after: list[ast.stmt]
    results: list[str]


def read_form(source: Source) -> Form:
    """The form of a function.

    Raises:
        ProgramError: it has not the form, with line, column and what to write.
    """
    body = source.tree.body
    _refuse_pauses(source)
    place = _place_of_loop(source)
    loop = body[place]
    assert isinstance(loop, ast.For)
    epoch = _epoch(source, loop)
    _refuse_jumps(source, body[:place], inner=True)
    _refuse_jumps(source, loop.body)
    back, loss = _backward(source, loop)
    used, optimizer = _update(source, loop.body, back)
    clips = _clips(source, loop.body[back + 1 : used])
    front = [x for x in loop.body[:back] if not _is_call(x, optimizer, "zero_grad")]
    behind = [x for x in loop.body[used + 1 :] if not _is_call(x, optimizer, "zero_grad")]
    if not any(_is_call(x, optimizer, "zero_grad") for x in loop.body):
        _refuse_without_zero_grad(source, loop.body, optimizer, back)
    modes = _modes(source, front)
    step, after = front[len(modes) :], body[place + 1 :]
    _check_step(source, step, epoch, behind)
    read = loads(behind) | loads(after)
    results = [n for n in dict.fromkeys(stores(step)) if n in read and n != loss]
    return Form(
        *(source, body[:place], loop, epoch, modes, step, loss, optimizer, clips, behind, after),
        results,
    )


def _calls(tree: ast.AST, method: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
        ):
            yield node


def _is_call(statement: ast.stmt, owner: str | None, *methods: str) -> bool:
    """Whether a statement is `owner.method(..)`; of any name, where there is no owner."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), method))):
            return method in methods and owner in (None, name)
        case _:
            return False


def _owner(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
            return name
        case _:
            raise AssertionError(statement)


def _place_of_loop(source: Source) -> int:
    found = list(_calls(source.tree, "backward"))
    if not found:
        raise source.error(
            source.tree, f"a training has a loop over epochs with {USUAL}: {source.name} has none"
        )
    if len(found) > 1:
        raise source.error(
            found[1], "a step has one `backward`: add the losses up and call it on the sum"
        )
    for i, statement in enumerate(source.tree.body):
        if any(node is found[0] for node in ast.walk(statement)):
            if isinstance(statement, ast.For):
                return i
            raise source.error(
                statement if isinstance(statement, ast.While) else found[0],
                "`backward` stands in a loop over epochs: write `for epoch in range(epochs):`",
            )
    raise AssertionError("a call in no statement")


def _epoch(source: Source, loop: ast.For) -> str:
    if not isinstance(loop.target, ast.Name):
        raise source.error(loop.target, "the loop counts epochs: `for epoch in range(epochs):`")
    match loop.iter:
        case ast.Call(ast.Name("range")):
            pass
        case _:
            raise source.error(
                loop.iter,
                "the loop runs over a `range` of epochs, each a step on the whole graph: "
                "`range(epochs)`",
            )
    if loop.orelse:
        raise source.error(loop.orelse[0], "the loop has no `else`: write it behind the loop")
    return loop.target.id


def _refuse_pauses(source: Source) -> None:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal):
            raise source.error(
                node, "a training gives its results at its end, by `return`, and by nothing else"
            )


def _refuse_jumps(source: Source, statements: Sequence[ast.stmt], inner: bool = False) -> None:
    """Raises for what leaves the loop, or an epoch before its end."""
    for node in statements:
        match node:
            case ast.Break() | ast.Continue() if not inner:
                word = "break" if isinstance(node, ast.Break) else "continue"
                raise source.error(
                    node, f"every epoch is trained to its end: `{word}` has no place in the loop"
                )
            case ast.Return():
                raise source.error(node, "`return` stands behind the loop")
            case ast.FunctionDef() | ast.ClassDef():
                continue
            case _:
                within = inner or isinstance(node, ast.For | ast.While)
                for name in ("body", "orelse", "finalbody"):
                    _refuse_jumps(source, getattr(node, name, []), within)


def _backward(source: Source, loop: ast.For) -> tuple[int, str]:
    """The place of `backward` in the loop, and the name of the loss."""
    (call,) = _calls(loop, "backward")
    for i, statement in enumerate(loop.body):
        if isinstance(statement, ast.Expr) and statement.value is call:
            if call.args or call.keywords:
                raise source.error(call, "`backward` takes no arguments here: `loss.backward()`")
            if not isinstance(call.func, ast.Attribute) or not isinstance(
                call.func.value, ast.Name
            ):
                raise source.error(call, "give the loss a name: `loss = ..`, `loss.backward()`")
            return i, call.func.value.id
    raise source.error(
        call,
        "`backward` is a statement of the loop over epochs itself, not of one within it: a step is "
        "the same in every epoch, on the whole graph",
    )


def _update(source: Source, body: Sequence[ast.stmt], back: int) -> tuple[int, str]:
    """The place of the optimizer's step, and its name."""
    steps = [i for i, x in enumerate(body) if _is_call(x, None, "step")]
    if not steps:
        raise source.error(
            body[back], "the gradients are used by nothing: write `optimizer.step()` behind"
        )
    if steps[0] < back:
        raise source.error(
            body[steps[0]],
            "the optimizer's step comes behind `backward`, which makes its gradients",
        )
    if len(steps) > 1:
        raise source.error(
            body[steps[1]],
            "a step has one update, by one optimizer: schedules of learning rates and second "
            "optimizers are for `gnnc.train_step` in a loop of your own",
        )
    return steps[0], _owner(body[steps[0]])


def _refuse_without_zero_grad(
    source: Source, body: Sequence[ast.stmt], optimizer: str, back: int
) -> None:
    other = [x for x in body if _is_call(x, None, "zero_grad")]
    write = f"`{optimizer}.zero_grad()`"
    if other:
        raise source.error(other[0], f"the gradients are those of the optimizer: {write}")
    raise source.error(
        body[back], f"gradients would add up from epoch to epoch: write {write} in front"
    )


def _clips(source: Source, between: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    clips: dict[str, ast.expr] = {}
    for statement in between:
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(_, name), [_, bound], [])) if name in CLIPS:
                if clips and name == "clip_grad_value_":
                    raise source.error(statement, "`clip_grad_value_` comes before the norm")
                clips[CLIPS[name]] = bound
            case _:
                raise source.error(
                    statement,
                    "between `backward` and the update gradients are clipped, by "
                    "`torch.nn.utils.clip_grad_norm_(model.parameters(), bound)` or "
                    "`clip_grad_value_`; nothing else is done there",
                )
    return clips


def _modes(source: Source, front: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements at the top that set modules to training."""
    count = 0
    while count < len(front) and _is_call(front[count], None, *MODES):
        count += 1
    for statement in front[count:]:
        if _is_call(statement, None, *MODES):
            raise source.error(statement, "this stands at the top of the loop, before the step")
    return list(front[:count])


def modes_of(form: Form) -> list[tuple[str, str]]:
    """The names of modules and the methods that set them to training."""
    found: list[tuple[str, str]] = []
    for statement in form.modes:
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(owner), method))):
                found.append((owner, method))
            case _:
                raise AssertionError(statement)
    return found


def _check_step(
    source: Source, step: Sequence[ast.stmt], epoch: str, behind: Sequence[ast.stmt]
) -> None:
    """Raises where a step depends on its epoch, or on an earlier one."""
    for node in (n for s in step for n in ast.walk(s)):
        if isinstance(node, ast.Name) and node.id == epoch:
            raise source.error(
                node, f"a step is the same in every epoch: `{epoch}` can be read behind it only"
            )
    if (name := carried(step)) is not None:
        raise source.error(
            name,
            f"`{name.id}` would be that of the epoch before: what a step computes ends with it, "
            "so give it another name",
        )
    later = set(stores(behind)) - set(stores(step))
    for node in (n for s in step for n in ast.walk(s)):
        if isinstance(node, ast.Name) and node.id in later:
            raise source.error(
                node, f"`{node.id}` is set behind the step: a step is the same in every epoch"
            )
