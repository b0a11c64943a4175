"""Answers about sizes that a program depends on: they have to be those of the whole graph.

`if x.size(0) > 1000:` is answered while a call is traced, of the rows of one rank. The branch that
is taken then holds for calls with the same answers, which Dynamo looks at in each call, of these
rows as well. So whoever prepares a graph asks again, of the sizes that tensors have in the whole.
A rank without rows is not asked: others have some, and its program has to be theirs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch import Tensor, fx

from ..importer.binding import Asked
from ..importer.emit.arguments import argument_name
from ..importer.errors import Unsupported
from . import cut_tensors


def asked(graph: fx.GraphModule) -> tuple[Asked, ...]:
    """The answers that a graph depends on, those about sizes of its arguments alone."""
    placeholders = graph.graph.find_nodes(op="placeholder")
    sizes = list(_sizes(placeholders))
    places = {n.node._expr: place for n, place in sizes}  # not what it was found to be since
    envs = {id(n.node.shape_env): n.node.shape_env for n, _ in sizes}
    guards = dict.fromkeys(g.expr for env in envs.values() for g in env.guards)
    return tuple(
        Asked(g, {s: places[s] for s in g.free_symbols})
        for g in guards
        if g.free_symbols and g.free_symbols <= places.keys()
    )


def _sizes(placeholders: Iterable[fx.Node]) -> Iterator[tuple[torch.SymInt, tuple[int, int]]]:
    for i, node in enumerate(placeholders):
        x = node.meta.get("example_value")
        for dim, n in enumerate(x.shape if isinstance(x, Tensor) else ()):
            if isinstance(n, torch.SymInt) and isinstance(n.node._expr, sympy.Symbol):
                yield n, (i, dim)


@contextmanager
def answered(graph: fx.GraphModule, args: Sequence[Any]) -> Generator[None]:
    """Where a program cannot be made for a call of a rank without rows, tells of answers that are
    others in the whole graph, for which that may be."""
    try:
        yield
    except Unsupported as error:
        names = [n.name for n in graph.graph.find_nodes(op="placeholder")]
        try:
            if cut_tensors.kinds(args):
                check(asked(graph), names, args, of_empty=True)
        except Unsupported as other:
            raise Unsupported(error.node, f"{error.reason}. {other.reason}") from error
        raise


def check(
    answers: Iterable[Asked], names: Sequence[str], args: Sequence[Any], of_empty: bool = False
) -> None:
    """Compares the answers of a trace with those of the whole graph that a call speaks of; `names`
    are those of the placeholders. Answers of tensors without rows are not compared, or alone.

    Raises:
        Unsupported: one is another there.
    """
    for a in answers:
        if of_empty != any(args[i].shape[d] == 0 for i, d in a.sizes.values()):
            continue
        whole = {s: cut_tensors.whole(args[i]).shape[d] for s, (i, d) in a.sizes.items()}
        if a.answer.subs(whole) == sympy.false:
            said = {s: f"{argument_name(names[i])}.size({d})" for s, (i, d) in a.sizes.items()}
            text = a.answer.subs({s: sympy.Symbol(name) for s, name in said.items()})
            sizes = ", ".join(f"{said[s]} is {n}" for s, n in whole.items())
            raise Unsupported(
                None,
                f"the code that is compiled asks for sizes, and finds {text} of the rows of this "
                f"rank, which is not so in the whole graph ({sizes}): ask before gnnc.distribute, "
                "and name the dimension in squeeze()",
            )
