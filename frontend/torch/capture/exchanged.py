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
from torch._dynamo.source import AttrSource, ChainedSource, Source
from torch._dynamo.variables.builder import VariableBuilder


@dataclass(frozen=True)
class _Exchange:
    takes: Callable[[Any], bool]
    attribute: str


_exchanges: list[_Exchange] = []


def exchange(
    of: type, attribute: str, takes: Callable[[Any], bool], give: Callable[[Any], Any]
) -> None:
    """Objects of class `of` for which `takes` holds are exchanged for what `give` makes of them,
    which must be the same object from call to call as long as it can be: guards compare addresses.
    It can be had as an `attribute` of the class.
    """

    @torch._dynamo.disable  # it runs between the guards and the compiled graph
    def given(x: Any) -> Any:
        if not takes(x):
            raise AttributeError(attribute)  # a guard fails then
        return give(x)

    setattr(of, attribute, property(given))
    _exchanges.append(_Exchange(lambda x: isinstance(x, of) and takes(x), attribute))


def _is_part(source: Source) -> bool:
    """Whether this is an object that was exchanged, or part of one. Its numbers, as the number of
    nodes, may be others: those of modules and of global variables are constants to Dynamo."""
    while isinstance(source, ChainedSource):
        if isinstance(source, AttrSource) and any(source.member == e.attribute for e in _exchanges):
            return True
        source = source.base
    return False


@contextmanager
def in_force() -> Generator[None]:
    """While it holds Dynamo exchanges what it finds."""
    plain = VariableBuilder._wrap

    def wrap(self: VariableBuilder, value: Any) -> Any:
        source = self.get_source()
        for known in _exchanges:
            if known.takes(value) and not _is_part(source):
                source = AttrSource(source, known.attribute)
                return VariableBuilder(self.tx, source)(getattr(value, known.attribute))
        if type(value) is int and _is_part(source):
            return self.wrap_symint(value)
        return plain(self, value)

    VariableBuilder._wrap = wrap  # type: ignore[method-assign]
    try:
        yield
    finally:
        VariableBuilder._wrap = plain  # type: ignore[method-assign]
