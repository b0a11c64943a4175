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
from typing import Any, NoReturn

import torch
from torch import fx
from torch._dynamo.codegen import PyCodegen
from torch._dynamo.exc import SkipFrame, Unsupported
from torch._dynamo.output_graph import OutputGraph
from torch._dynamo.source import AttrSource, ChainedSource, Source
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import VariableBuilder
from torch._dynamo.variables.tensor import TensorVariable


@dataclass(frozen=True)
class _Exchange:
    of: type
    takes: Callable[[Any], bool]
    attribute: str
    not_in: Callable[[str], bool]
    own: frozenset[str] = frozenset()
    own_functions: frozenset[Any] = frozenset()


_exchanges: list[_Exchange] = []


def _nowhere(file: str) -> bool:
    return False


def exchange(
    of: type,
    attribute: str,
    takes: Callable[[Any], bool],
    give: Callable[[Any], Any],
    not_in: Callable[[str], bool] = _nowhere,
    own: frozenset[str] = frozenset(),
    own_functions: frozenset[Any] = frozenset(),
) -> None:
    """Objects of class `of` for which `takes` holds are exchanged for what `give` makes of them,
    which must be the same object from call to call as long as it can be: guards compare addresses.
    It can be had as an `attribute` of the class. Functions of files that are `not_in` run as they
    are unless they are called by what is traced: they are about the objects themselves. Where an
    attribute is asked for that is the object's `own`, or it is given to one of its `own_functions`,
    the graph ends and the object is asked: what it is exchanged for lacks that, or means another
    thing by it.
    """

    @torch._dynamo.disable  # it runs between the guards and the compiled graph
    def given(x: Any) -> Any:
        if not takes(x):
            raise AttributeError(attribute)  # a guard fails then
        return give(x)

    setattr(of, attribute, property(given))
    known = _Exchange(
        of, lambda x: isinstance(x, of) and takes(x), attribute, not_in, own, own_functions
    )
    _exchanges.append(known)


def exchange_class(of: type, attribute: str, other: type) -> None:
    """The class `of` is exchanged for another one, which becomes an `attribute` of it."""
    setattr(of, attribute, other)
    _exchanges.append(_Exchange(of, lambda x: x is of, attribute, _nowhere))


def _is_part(source: Source) -> bool:
    """Whether this is an object that was exchanged, or part of one. Its numbers, as the number of
    nodes, may be others: those of modules and of global variables are constants to Dynamo."""
    while isinstance(source, ChainedSource):
        if isinstance(source, AttrSource) and any(source.member == e.attribute for e in _exchanges):
            return True
        source = source.base
    return False


def _exchange_of(source: Source | None) -> _Exchange | None:
    """Of what object that was exchanged this is the source, if it is."""
    if not isinstance(source, AttrSource):
        return None
    return next((e for e in _exchanges if e.attribute == source.member), None)


def _ends_graph(known: _Exchange, asked: str) -> NoReturn:
    raise Unsupported(
        f"{known.of.__name__}'s own {asked}\n"
        "  Explanation: what stands for it in a graph lacks that, or means another thing by it"
    )


def _given_for(x: Any) -> Source | None:
    """Where the object is that was exchanged for `x`, if it was: code that is not traced, between
    two graphs or behind the last, gets that."""
    source = x.source if isinstance(x, VariableTracker) else None
    if isinstance(source, AttrSource) and _exchange_of(source):
        return source.base
    return None


def _source_of(x: Any) -> Source | None:
    """The source of an input of the graph."""
    argument = x.node.meta.get("grapharg") if isinstance(x, fx.Proxy) else None
    return None if argument is None else argument.source


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

    plain_attribute, plain_proxy = TensorVariable.var_getattr, OutputGraph.create_proxy

    def attribute(self: TensorVariable, tx: Any, name: str) -> Any:
        known = _exchange_of(self.source)
        if known is not None and name in known.own:
            _ends_graph(known, name)
        return plain_attribute(self, tx, name)

    def proxy(self: OutputGraph, kind: str, target: Any, args: Any, *rest: Any, **more: Any) -> Any:
        for x in args:
            known = _exchange_of(_source_of(x))
            if known is not None and target in known.own_functions:
                _ends_graph(known, getattr(target, "__name__", str(target)))
        return plain_proxy(self, kind, target, args, *rest, **more)

    VariableBuilder.__call__ = call  # type: ignore[method-assign]
    VariableBuilder._wrap = wrap  # type: ignore[method-assign]
    PyCodegen.__call__ = codegen  # type: ignore[method-assign]
    TensorVariable.var_getattr = attribute  # type: ignore[method-assign]
    OutputGraph.create_proxy = proxy  # type: ignore[method-assign]
    try:
        yield
    finally:
        VariableBuilder.__call__ = plain  # type: ignore[method-assign]
        VariableBuilder._wrap = plain_wrap  # type: ignore[method-assign]
        PyCodegen.__call__ = plain_codegen  # type: ignore[method-assign]
        TensorVariable.var_getattr = plain_attribute  # type: ignore[method-assign]
        OutputGraph.create_proxy = plain_proxy  # type: ignore[method-assign]
