"""What a program comes upon and Dynamo cannot trace, exchanged for what it can.

Sparse matrices and graphs of DGL are arguments, attributes of modules, variables around a function.
Where Dynamo is about to take such an object in, it is told to take an attribute of it in its place:
guards and the code in front of the compiled graph ask for that at every call, so they see the
object as it is then, and nothing of the user's is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.codegen import PyCodegen
from torch._dynamo.exc import SkipFrame
from torch._dynamo.source import AttrSource, ChainedSource, Source
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import VariableBuilder


@dataclass(frozen=True)
class _Exchange:
    takes: Callable[[Any], bool]
    attribute: str
    not_in: Callable[[str], bool]


_exchanges: list[_Exchange] = []


def _nowhere(file: str) -> bool:
    return False


def exchange(
    of: type,
    attribute: str,
    takes: Callable[[Any], bool],
    give: Callable[[Any], Any],
    not_in: Callable[[str], bool] = _nowhere,
) -> None:
    """Objects of class `of` for which `takes` holds are exchanged for what `give` makes of them,
    which must be the same object from call to call as long as it can be: guards compare addresses.
    It can be had as an `attribute` of the class. Functions of files that are `not_in` run as they
    are unless they are called by what is traced: they are about the objects themselves.
    """

    @torch._dynamo.disable  # it runs between the guards and the compiled graph
    def given(x: Any) -> Any:
        if not takes(x):
            raise AttributeError(attribute)  # a guard fails then
        return give(x)

    setattr(of, attribute, property(given))
    _exchanges.append(_Exchange(lambda x: isinstance(x, of) and takes(x), attribute, not_in))


def exchange_class(of: type, attribute: str, other: type) -> None:
    """The class `of` is exchanged for another one, which becomes an `attribute` of it."""
    setattr(of, attribute, other)
    _exchanges.append(_Exchange(lambda x: x is of, attribute, _nowhere))


def _is_part(source: Source) -> bool:
    """Whether this is an object that was exchanged, or part of one. Its numbers, as the number of
    nodes, may be others: those of modules and of global variables are constants to Dynamo."""
    while isinstance(source, ChainedSource):
        if isinstance(source, AttrSource) and any(source.member == e.attribute for e in _exchanges):
            return True
        source = source.base
    return False


def _given_for(x: Any) -> Source | None:
    """Where the object is that was exchanged for `x`, if it was: code that is not traced, between
    two graphs or behind the last, gets that."""
    source = x.source if isinstance(x, VariableTracker) else None
    if isinstance(source, AttrSource) and any(source.member == e.attribute for e in _exchanges):
        return source.base
    return None


@contextmanager
def in_force() -> Generator[None]:
    """While it holds Dynamo exchanges what it finds."""
    plain_codegen = PyCodegen.__call__

    def codegen(self: PyCodegen, value: Any, allow_cache: bool = True) -> None:
        plain_codegen(self, _given_for(value) or value, allow_cache)

    plain, plain_wrap = VariableBuilder.__call__, VariableBuilder._wrap

    def call(self: VariableBuilder, value: Any) -> Any:
        # Before Dynamo looks whether it knows the object from elsewhere, so it compares the others.
        source, root = self.get_source(), self.tx.output.root_tx.f_code.co_filename
        if any(known.not_in(root) for known in _exchanges):
            raise SkipFrame("it is what an object that is exchanged does itself")
        for known in _exchanges:
            if known.takes(value) and not _is_part(source):
                part = AttrSource(source, known.attribute)
                return plain(VariableBuilder(self.tx, part), getattr(value, known.attribute))
        return plain(self, value)

    def wrap(self: VariableBuilder, value: Any) -> Any:
        if type(value) is int and _is_part(self.get_source()):
            number = self.wrap_symint(value)
            if value >= 0 and hasattr(number, "sym_num"):
                torch._check(number.sym_num >= 0)  # it counts: `x[:number]` is from the front
            return number
        return plain_wrap(self, value)

    VariableBuilder.__call__ = call  # type: ignore[method-assign]
    VariableBuilder._wrap = wrap  # type: ignore[method-assign]
    PyCodegen.__call__ = codegen  # type: ignore[method-assign]
    try:
        yield
    finally:
        VariableBuilder.__call__ = plain  # type: ignore[method-assign]
        VariableBuilder._wrap = plain_wrap  # type: ignore[method-assign]
        PyCodegen.__call__ = plain_codegen  # type: ignore[method-assign]
