"""What Dynamo took for granted of numbers that only running the program tells.

Rows that are counted by data (the graphs of a batch, the nodes of a mask) meet rows that an
argument has, or other such rows; torch's trace takes the two numbers for one, and says in the graph
that this has to hold. It follows from integers that a call is given, so it is looked at once for
each state of these, in torch, before anything else runs.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import Tensor, fx

from ....runtime.memo import Memo
from .calls.canonical import canonical
from .emit.arguments import argument_name
from .errors import node_name
from .memory.effects import draws, written
from .values.sizes import example, expression

DYNAMO_SAYS = "Runtime assertion failed for expression"
"""How the messages begin of what Dynamo says itself; others are the user's."""


class SizesDiffer(RuntimeError):
    """Numbers of rows that a program takes for one differ in a call, of which nothing has run."""


@dataclass(frozen=True)
class Relation:
    """Something that has to hold in a call of a graph. `holds` takes the placeholders at the
    positions `read`: `tensors` of integers, and `numbers`. `message` says what it is."""

    holds: Callable[..., Any]
    read: tuple[int, ...]
    tensors: tuple[int, ...]
    numbers: tuple[int, ...]
    message: str

    def check(self, args: Sequence[Any]) -> None:
        """
        Raises:
            SizesDiffer: it does not hold.
        """
        with torch.no_grad():
            if not self.holds(*(args[i] for i in self.read)):
                raise SizesDiffer(self.message)


def checked_first(graph: fx.Graph, run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, which runs a graph in parts or in torch, behind a look at what the graph demands."""
    relations = relations_of(graph)
    if not relations:
        return run
    tensors = sorted({i for r in relations for i in r.tensors})
    numbers = sorted({i for r in relations for i in r.numbers})
    seen = Memo()

    def look(args: Sequence[Any]) -> bool:
        for r in relations:
            r.check(args)
        return True

    def checked(*args: Any) -> Any:
        key = tuple(args[i] for i in numbers)
        seen.get_for([args[i] for i in tensors], key, lambda: look(args))
        return run(*args)

    return checked


def is_relation(node: fx.Node) -> bool:
    """Whether a node demands something of numbers."""
    return node.op == "call_function" and node.target is torch.ops.aten._assert_scalar.default


def relations_of(graph: fx.Graph) -> tuple[Relation, ...]:
    """What a graph demands of numbers that integers of its calls tell. (Rows that floats count have
    no program: torch counts them, and looks at what it demands when all else has run.)"""
    return tuple(r for node in graph.nodes if is_relation(node) and (r := _relation(node)))


def _relation(node: fx.Node) -> Relation | None:
    condition, message = node.args[0], str(node.args[1])
    if not isinstance(condition, fx.Node) or _is_plain(condition):
        return None
    if message.startswith(DYNAMO_SAYS) and _is_of_any_rows(condition):
        return None
    copied = _Copied(node.graph)
    try:
        result = copied.number(condition)
    except _OfFloats:
        return None
    message = f"sizes are not as in the call it was compiled for: {_said(node.graph, message)}"
    return copied.relation(result, message)


def _said(graph: fx.Graph, message: str) -> str:
    """What a message of Dynamo's demands, with the arguments whose rows it speaks of."""
    says = message.removeprefix(DYNAMO_SAYS).partition(" on node ")[0].strip()
    rows: dict[str, str] = {}
    for node in graph.nodes:
        value = example(node)
        if node.op == "placeholder" and isinstance(value, Tensor):
            name = argument_name(str(node.target))
            for d, size in enumerate(value.shape):
                rows.setdefault(str(expression(size)), f"{name}.shape[{d}]")
    symbols = [s for s in dict.fromkeys(re.findall(r"\bs\d+\b", says)) if s in rows]
    return ", ".join([says, *(f"where {s} is {rows[s]}" for s in symbols)])


def _is_plain(node: fx.Node) -> bool:
    """Whether sizes of arguments alone tell a number: a guard of Dynamo's has seen to it."""
    if node.op == "placeholder":
        return True
    return all(_is_number(x) and _is_plain(x) for x in node.all_input_nodes)


def _is_number(node: fx.Node) -> bool:
    return isinstance(example(node), int | float | torch.SymInt | torch.SymFloat | torch.SymBool)


def _is_of_any_rows(condition: fx.Node) -> bool:
    """Whether this says of a tensor's rows that their number is one, or that there are some: what
    is not for none (an extremum) sees to that itself."""
    says = sympy.Or.make_args(expression(example(condition)))
    if all(isinstance(x, sympy.Ne) and x.rhs.is_zero for x in says):
        return True
    if condition.target not in (operator.ge, operator.gt) or len(condition.args) != 2:
        return False
    of, least = condition.args
    rows = isinstance(of, fx.Node) and node_name(of) == "sym_size.int"
    return rows and isinstance(least, int) and least <= 1


class _OfFloats(Exception):
    """A number depends on floats, on what is drawn, or on what the graph edits."""


@dataclass
class _Copied:
    """The part of a graph that tells a number from integers, as a graph of its own."""

    whole: fx.Graph
    graph: fx.Graph = field(default_factory=fx.Graph)
    made: dict[fx.Node, fx.Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.given = [n for n in self.whole.nodes if n.op == "placeholder"]
        self.edited = {x for n in self.whole.nodes for x in written(n)}
        self.inputs = {n: self.graph.placeholder(n.name) for n in self.given}

    def number(self, node: fx.Node) -> fx.Node:
        """A copy of a node and of all that it depends on.

        Raises:
            _OfFloats: that is not integers alone.
        """
        if node not in self.made:
            self.made[node] = self._copy(node)
        return self.made[node]

    def _copy(self, node: fx.Node) -> fx.Node:
        value = example(node)
        floats = isinstance(value, Tensor) and value.is_floating_point()
        if floats or node.op == "get_attr" or node in self.edited or draws(node):
            raise _OfFloats
        if node.op == "placeholder":
            return self.inputs[node]
        rows = _rows_by_index(node)
        if rows is not None:
            function, index = rows
            return self.graph.call_function(function, (self.number(index),))
        for x in node.all_input_nodes:
            self.number(x)
        return self.graph.node_copy(node, self.number)

    def relation(self, result: fx.Node, message: str) -> Relation:
        self.graph.output(result)
        read = [i for i, n in enumerate(self.given) if n in self.made]
        for node, x in self.inputs.items():
            if node not in self.made:
                self.graph.erase_node(x)
        module = fx.GraphModule(torch.nn.Module(), self.graph)
        tensors = tuple(i for i in read if isinstance(example(self.given[i]), Tensor))
        numbers = tuple(i for i in read if i not in tensors)
        return Relation(module.forward, tuple(read), tensors, numbers, message)


def _rows_by_index(node: fx.Node) -> tuple[Callable[[Tensor], int], fx.Node] | None:
    """Of the number of rows of `x[index]`, whatever x is: how the index tells it, and the index."""
    if node_name(node) != "sym_size.int" or node.args[1] != 0:
        return None
    of = node.args[0]
    call = canonical(of) if isinstance(of, fx.Node) else None
    if call is None or call.op != "getitem" or call.fault is not None:
        return None
    index = call.arguments["index"]
    value = example(index)
    if not isinstance(index, fx.Node) or not isinstance(value, Tensor) or value.dim() != 1:
        return None
    return (_chosen if value.dtype == torch.bool else _length), index


def _chosen(mask: Tensor) -> int:
    return int(mask.sum())


def _length(index: Tensor) -> int:
    return index.shape[0]
