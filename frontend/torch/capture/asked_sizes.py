"""What a trace asks about sizes, and which of the answers its program depends on.

Dynamo tells a size of 0 or 1 from all others wherever its symbol is made. A model with R relations,
any of which may be empty, would need a program for each pattern. With `backed_size_oblivious` a
size may be any number, and a question that torch can do without ("is it 1?", of a layout) gets the
answer of large sizes, with no guard. But some of these answers change what is computed (`squeeze`
leaves out a dimension, or not), and symbols are still declared positive, so that `size == 0` is
answered before it is asked. While Dynamo compiles for us, therefore,

- a size may be 0: comparisons with it, in the user's code and in torch's, are questions;
- a question is answered by the size at hand, and leaves a guard, unless those who ask are known to
  ask of nothing but layouts (`LAYOUTS`, `LAYOUTS_IN_C`);
- sizes that meet are not asked for a 1 unless it stands against another number;
- strides are said in sizes, for tensors without rows as well.

A program then serves all calls with the same answers. `Answers` counts programs and bounds them.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from types import FrameType
from typing import Any

import sympy
import torch
from torch._dynamo import convert_frame, symbolic_convert
from torch._dynamo.exc import UserError, UserErrorType
from torch._guards import CompileContext, TracingContext
from torch._subclasses import fake_impls
from torch.fx.experimental import _config as fx_config
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.utils._sympy.functions import Max

from ..libraries.pyg import leaves

LAYOUTS: dict[str, set[str]] = {
    "torch._decomp.decompositions": {"*"},  # choices between ways to the same numbers
    "torch._meta_registrations": {"*"},  # strides of results, checks that an empty index is spared
    "torch._prims": {"_broadcast_in_dim_meta", "_collapse_view_helper"},
    "torch._prims_common": {"*", "-same_shape"},
    "torch._refs": {"_broadcast_shapes", "_maybe_broadcast", "cat", "expand"},
    "torch._subclasses.fake_impls": {
        "_compute_slice_index",  # its answer is a minimum then
        "_compute_stride",
        "_hinted_eq",
        "_is_contiguous_with_hinted_checks",
        "_view_unbacked_meta",
        "infer_size",
        "make_fast_binary_impl",
        "slice_forward",
    },
    "torch._subclasses.meta_utils": {"*"},
    "torch._tensor": {"*"},
}
"""Functions by module that ask for the sake of layouts alone, or ask again where it matters."""

LAYOUTS_IN_C = (
    "Contiguity.h",
    "EmptyTensor.cpp",
    "InferSize.h",
    "Linear.cpp",  # einsum: sizes that do not fit are found at the call
    "Resize.h",
    "ScatterGatherChecks.h",
    "SymbolicShapeMeta.cpp",
    "TensorBase.h",
    "TensorImpl.cpp",
    "TensorImpl.h",
    "TensorIndexing.h",
    "TensorShape.cpp",
    "TensorUtils.cpp",
    "WrapDimUtils.h",
)
"""The same for torch's files in C++."""

NEVER_ASSUMED = {("torch._refs", "squeeze")}
"""Where torch takes a size that depends on data for large, and we do not."""

MOST_ANSWERS = 16
"""How many programs one function may have because of what it asks."""

_made = symbolic_shapes.make_symbol
_guard_or = symbolic_shapes._guard_or
_met = fake_impls.infer_size
_joined = torch._refs._broadcast_shapes
_expanded = inspect.unwrap(torch._refs.expand).__code__
_has_hint = symbolic_shapes.has_guarding_hint
_bool_of = SymNode.bool_
_compared = SymNode.guard_bool
_hint_of = symbolic_shapes.guarding_hint_or_throw
_sizes_of = ShapeEnv._produce_dyn_sizes_from_int_tuple
_strides_of = ShapeEnv._compute_symbolic_stride


@contextmanager
def answered() -> Iterator[None]:
    """While this holds, a size may be any number, and questions leave the guards they have to."""
    with ExitStack() as stack:
        stack.enter_context(fx_config.patch(backed_size_oblivious=True))
        for where, name, new in (
            (symbolic_shapes, "make_symbol", _symbol),
            (symbolic_shapes, "_guard_or", _answer),
            (fake_impls, "infer_size", _meet),
            (torch._refs, "_broadcast_shapes", _join),
            (symbolic_shapes, "has_guarding_hint", _has_hint_or_expands),
            (symbolic_shapes, "guarding_hint_or_throw", _hint_or_many),
            (ShapeEnv, "_produce_dyn_sizes_from_int_tuple", _sizes),
            (ShapeEnv, "_compute_symbolic_stride", _strides),
            (SymNode, "guard_or_false", _false_to_c),
            (SymNode, "guard_or_true", _true_to_c),
            (SymNode, "bool_", _truth_in_torch),
            (SymNode, "guard_bool", _compared_in_c),
            (symbolic_convert, "guard_bool", _truth),
        ):
            stack.enter_context(_replaced(where, name, new))
        yield


@contextmanager
def answered_later() -> Iterator[None]:
    """The same for what is traced anew of a graph that Dynamo has made. What is replaced is so for
    all threads: one traces at a time."""
    with convert_frame.compile_lock, answered():
        yield


@contextmanager
def _replaced(where: Any, name: str, new: Any) -> Iterator[None]:
    old = getattr(where, name)
    setattr(where, name, new)
    try:
        yield
    finally:
        setattr(where, name, old)


def _symbol(kind: Any, number: int, **assumptions: Any) -> sympy.Symbol:
    """A symbol of torch's, but that a size may be 0. It is not declared to be no less either: torch
    solves inequalities by division by what is not negative. Its range says that it is not."""
    assumptions.pop("positive", None)
    return _made(kind, number, **assumptions)


def _sizes(self: ShapeEnv, *args: Any, **kwargs: Any) -> list[sympy.Expr]:
    """The sizes of a tensor: what is found to be 0 or 1 is that number from then on. torch would
    keep a symbol that it takes for a large number elsewhere."""
    out = _sizes_of(self, *args, **kwargs)
    self.size_like.difference_update(out)
    return out


def _strides(
    self: ShapeEnv,
    source: Any,
    size: Sequence[sympy.Expr],
    ex_size: Sequence[int],
    ex_stride: Sequence[int],
    *rest: Any,
) -> list[sympy.Expr]:
    """Strides as expressions of sizes. torch would take those of an empty tensor for constants."""
    if list(ex_stride) == _usual(ex_size, max):
        return _usual(size, Max)
    return _strides_of(self, source, size, ex_size, ex_stride, *rest)


def _usual(size: Sequence[Any], largest: Any) -> list[Any]:
    """The strides of a tensor without gaps."""
    out = [largest(1, 1)]
    for n in reversed(size[1:]):
        out.append(out[-1] * largest(n, 1))
    return out[::-1]


# ---------------------------------------------------------------- questions


def _answer(question: torch.SymBool | bool, default: bool) -> bool:
    """`guard_or_false` and `guard_or_true`, asked by a function in Python."""
    asker = _asker(sys._getframe(2))
    return _answer_to(question, default, _of_layout(asker), asker in NEVER_ASSUMED)


def _false_to_c(node: SymNode, file: str, line: int) -> bool:
    return _answer_to(torch.SymBool(node), False, file.endswith(LAYOUTS_IN_C))


def _true_to_c(node: SymNode, file: str, line: int) -> bool:
    return _answer_to(torch.SymBool(node), True, file.endswith(LAYOUTS_IN_C))


def _compared_in_c(node: SymNode, file: str, line: int) -> bool:
    """What `size == 1` is in C++, where nobody tells for what it is asked: what the Python that has
    called asks for, a copy without gaps say, tells. Whether two sizes are the same is no question
    of layouts (a gradient has the size of what it is of)."""
    question = node.expr
    with_number = isinstance(question, sympy.Eq | sympy.Ne) and (
        question.lhs.is_number or question.rhs.is_number
    )
    layout = file.endswith("SymInt.h") and with_number and _of_layout(_asker(sys._getframe(1)))
    if not layout:
        return _compared(node, file, line)
    return _guard_or(torch.SymBool(node), isinstance(question, sympy.Ne))


def _answer_to(
    question: torch.SymBool | bool, default: bool, layout: bool, strict: bool = False
) -> bool:
    if not isinstance(question, torch.SymBool) or layout or _in_a_leaf():
        return _guard_or(question, default)
    known = symbolic_shapes._static_eval_sym_bool(question)
    if known is not None:
        return known
    node = question.node
    fallback = None if strict else default  # of what only running the program tells
    return bool(node.shape_env.evaluate_sym_node(node, fallback_value=fallback))


def _truth(question: torch.SymBool | bool) -> bool:
    """The branch that `if number:` takes. Where only running tells, Dynamo leaves the graph there,
    as it does at a comparison; by itself it would fail."""
    try:
        return symbolic_shapes.guard_bool(question)
    except GuardOnDataDependentSymNode as unknown:
        raise UserError(UserErrorType.ANTI_PATTERN, str(unknown)) from unknown


def _truth_in_torch(node: SymNode) -> bool:
    """The branch that `if size == other:` takes in a function that was called. Losses of torch's
    refuse or warn of sizes that differ: where only running tells, they are taken for equal, which
    is looked at in each call (importer/relations.py)."""
    try:
        return _bool_of(node)
    except GuardOnDataDependentSymNode:
        asker = sys._getframe(2).f_globals.get("__name__")
        if asker != "torch.nn.functional" or not isinstance(node.expr, sympy.Eq):
            raise
        torch._check(torch.SymBool(node))
        return True


def _in_a_leaf() -> bool:
    """Whether the body of a leaf asks: what a leaf means holds for all sizes."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == leaves.__file__:
            return True
        frame = frame.f_back
    return False


def _asker(frame: FrameType) -> tuple[str, str]:
    """The module and the outermost function of a frame."""
    return frame.f_globals.get("__name__", ""), frame.f_code.co_qualname.partition(".")[0]


def _of_layout(asker: tuple[str, str]) -> bool:
    functions = LAYOUTS.get(asker[0], set())
    return asker[1] in functions or ("*" in functions and f"-{asker[1]}" not in functions)


# ---------------------------------------------------------------- sizes that meet


def _meet(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    """The shape of two that are broadcast."""
    _tell_ones(a, b)
    return _met(a, b)


def _join(*shapes: Any) -> list[Any] | None:
    """The shape of several that are broadcast; some are numbers, or None."""
    _tell_ones(*(s for s in shapes if isinstance(s, Sequence)))
    return _joined(*shapes)


def _tell_ones(*shapes: Sequence[Any]) -> None:
    """A 1 that meets another number, or one that only running tells, is made a constant: torch
    would take it for a large one, and say that the two do not fit."""
    for sizes in zip_longest(*map(reversed, shapes), fillvalue=1):
        found = [_hint(size) for size in sizes]
        if any(hint != 1 for hint in found):
            for size, hint in zip(sizes, found, strict=True):
                torch._check(hint != 1 or size == 1)


def _has_hint_or_expands(size: Any) -> bool:
    """What `expand` asks before it takes a 1 that becomes another number for a constant: a number
    that only running tells is another as well."""
    return _has_hint(size) or sys._getframe(1).f_code is _expanded


def _hint_or_many(size: Any) -> Any:
    """The hint, of which `expand` asks whether it is a 1."""
    return _hint_of(size) if _has_hint(size) else 2


def _hint(size: Any) -> int | None:
    known = symbolic_shapes.has_guarding_hint(size)
    return symbolic_shapes.guarding_hint_or_throw(size) if known else None


# ---------------------------------------------------------------- answers


class Answers:
    """The answers that the programs of one callable depend on, counted for each of its frames."""

    def __init__(self) -> None:
        self.seen: dict[int | None, set[frozenset[str]]] = {}
        self.messages: dict[int | None, str] = {}

    def too_many(self) -> str | None:
        """Counts the program that is being made. A message where it should not be, because there
        are `MOST_ANSWERS` for other answers."""
        env, frame = _traced()
        guards = [g.expr for g in env.guards if not _is_width(g.expr)] if env is not None else []
        seen = self.seen.setdefault(frame, set())
        seen.add(frozenset(map(str, guards)))
        if len(seen) <= MOST_ANSWERS:
            return None
        return self.messages.setdefault(frame, self.message(env, guards))

    @staticmethod
    def message(env: ShapeEnv | None, guards: Sequence[sympy.Basic]) -> str:
        relations = [g for g in guards if isinstance(g, sympy.Eq | sympy.Ne)] or guards
        sizes = dict.fromkeys(_named(env, s) for g in relations for s in g.free_symbols)
        return (
            f"runs in torch for further sizes: it tells them apart ({', '.join(sizes)}), and there "
            f"are {MOST_ANSWERS} programs for others"
        )


def _traced() -> tuple[ShapeEnv | None, int | None]:
    """The symbols of the graph that is being compiled, and the number of its frame."""
    context, number = TracingContext.try_get(), CompileContext.current_compile_id()
    mode = None if context is None else context.fake_mode
    return None if mode is None else mode.shape_env, None if number is None else number.frame_id


def _is_width(answer: sympy.Basic) -> bool:
    """Whether an answer fixes a size that is neither 0 nor 1, as importing fixes widths."""
    return isinstance(answer, sympy.Eq) and answer.rhs.is_Integer and answer.rhs > 1


def _named(env: Any, symbol: sympy.Basic) -> str:
    """A size in the user's words."""
    sources = env.var_to_sources.get(symbol)
    name = sources[0].name if sources else str(symbol)
    return re.sub(r"\bL\['(\w+)'\]", r"\1", name if isinstance(name, str) else name())
