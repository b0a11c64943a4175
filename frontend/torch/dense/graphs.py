"""Graphs of Dynamo's without dense batches: what is computed of these is said of rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import sympy
import torch
from torch import Tensor, fx
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

from ..importer.calls.canonical import Canonical
from ..importer.memory.effects import call_of, edited, switches_mode, written
from ..importer.memory.history import GradModes
from ..importer.relations import is_relation
from ..importer.values.sizes import expression, storage, tensors_in
from ..ranks import cut_tensors
from ..retraced import Retraced, example_of, node_of, value_of
from . import attention, moves, products  # noqa: F401  (their functions register)
from .filled import filled
from .functions import Call, function_of
from .memory import Memory
from .pairs import MOST_PAIRS, batch_of
from .values import GRAPH, KEY, PLACE, Dense, NotByRows, Places, Rows, width

Backend = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]
Run = Callable[..., Any]


def on_rows(backend: Backend) -> Backend:
    """A backend that takes graphs with dense batches from one that has no dimensions of places."""

    def taking(graph: fx.GraphModule, examples: Sequence[Any]) -> Run:
        made = None if cut_tensors.kinds(examples) else _made(graph, examples)
        return backend(graph, examples) if made is None else _ByRows(backend, graph, made, examples)

    return taking


def _made(graph: fx.GraphModule, examples: Sequence[Any]) -> _Copy | None:
    """The graph said of rows; None where there is nothing to say so, or no way."""
    found = _batches(graph.graph)
    if not found:
        return None
    given = dict(zip(graph.graph.find_nodes(op="placeholder"), examples, strict=True))
    batches = {b: batch_of(given[b]) for b, _, _ in found.values()}
    partners = {b: x.number_of_pairs / max(len(x.batch), 1) for b, x in batches.items()}
    try:
        copy = _Copy(graph, found, partners)
        copy.run()
    except NotByRows:
        return None
    return copy


class _ByRows:
    """A graph that is computed on rows, or with places where its batches have none in order, or
    where there are so many pairs of nodes that dense products are faster."""

    def __init__(
        self, backend: Backend, graph: fx.GraphModule, made: _Copy, examples: Sequence[Any]
    ) -> None:
        self.backend, self.graph = backend, graph
        self.made = fx.GraphModule(graph, made.graph)
        self.batches, self.paired = made.arguments(), made.paired()
        self.graphs = made.counts
        self.runs: dict[bool, Run] = {}
        self._program(examples)

    def __call__(self, *args: Any) -> Any:
        run, given = self._program(args)
        return run(*given)

    def _program(self, args: Sequence[Any]) -> tuple[Run, Sequence[Any]]:
        batches = [batch_of(args[i]) for i in self.batches]
        rows = all(b.fits for b in batches)
        rows = rows and all(batch_of(args[i]).graphs <= number(args) for i, number in self.graphs)
        pairs = [batches[k] for k in self.paired]
        rows = rows and all(b.number_of_pairs <= MOST_PAIRS * len(b.batch) for b in pairs)
        more = [x for b in pairs for x in (b.pairs.shape[1], b.pairs)] if rows else []
        given = [*args, *more]
        if rows not in self.runs:
            self.runs[rows] = self.backend(self.made if rows else self.graph, given)
        return self.runs[rows], given


def _batches(graph: fx.Graph) -> dict[fx.Node, tuple[fx.Node, Any, fx.Node]]:
    """The dense batches with as many places as the largest graph of an argument has: the argument,
    how many graphs there are, and the places."""
    found: dict[fx.Node, tuple[fx.Node, Any, fx.Node]] = {}
    edits = {storage(example_of(x)) for n in graph.nodes for x in written(n)}
    for node in graph.nodes:
        if node.target is torch.ops.gnnc.dense_batch:
            _, batch, _, places, graphs = node.args
            if _is_longest(places, batch, graphs) and storage(example_of(batch)) not in edits:
                found[node] = (batch, graphs, places)
    return found


def _is_longest(places: Any, batch: Any, graphs: Any) -> bool:
    """Whether a number of places is read from the very batch."""
    given = isinstance(batch, fx.Node) and batch.op == "placeholder"
    if not given or not isinstance(places, fx.Node) or places.target != "item":
        return False
    longest = places.args[0]
    ours = isinstance(longest, fx.Node) and longest.target is torch.ops.gnnc.longest_group
    return ours and longest.args == (batch, graphs)


class _Copy:
    """A copy of a graph, in which dense batches are rows."""

    def __init__(
        self,
        old: fx.GraphModule,
        batches: dict[fx.Node, tuple[fx.Node, Any, fx.Node]],
        partners: dict[fx.Node, float],
    ) -> None:
        self.old, self.found, self.partners = old, batches, partners
        self.graph = fx.Graph()
        self.modes = GradModes(old.graph)
        self.memory = Memory(old.graph, self.modes)
        self.dense_ones = set[fx.Node]()  # nodes that are dense batches, or were until they filled
        self.fake = _fake_mode(old.graph)
        self.node: fx.Node | None = None
        self.tracer = Retraced(self.graph, self.mode)
        self.now: dict[fx.Node, Any] = {}  # a node, or a dense batch, or several
        self.other = set[fx.Node]()  # nodes of the copy that may have other examples
        self.places: dict[tuple[fx.Node, Any], Places] = {}
        self.pairs: dict[fx.Node, fx.Node] = {}
        self.counts: list[tuple[int, Callable[[Sequence[Any]], int]]] = []

    @contextmanager
    def mode(self) -> Iterator[None]:
        """Where examples are computed: in the mode of autograd of the node at hand."""
        records = self.node is None or self.modes.at[self.node]
        with torch.set_grad_enabled(records), self.fake:
            yield

    def arguments(self) -> list[int]:
        """The places of the batches among the arguments."""
        given = list(self.old.graph.find_nodes(op="placeholder"))
        return [given.index(b) for b in self.given()]

    def numbers_of_graphs(self) -> list[tuple[int, Callable[[Sequence[Any]], int]]]:
        """The place of a batch among the arguments, and how many graphs it may have in a call. What
        is counted of the batch itself is as many as there are.

        Raises:
            NotByRows: other data tells it.
        """
        given = list(self.old.graph.find_nodes(op="placeholder"))
        sizes = {expression(x): i for i, n in enumerate(given) if _is_size(x := example_of(n))}
        out: list[tuple[int, Callable[[Sequence[Any]], int]]] = []
        for batch, graphs, _ in self.found.values():
            if _is_counted(graphs, batch):
                continue
            size = expression(example_of(graphs) if isinstance(graphs, fx.Node) else graphs)
            symbols = list(size.free_symbols)
            if any(x not in sizes for x in symbols):
                raise NotByRows("graphs that are counted by other data than the batch")
            out.append((given.index(batch), _number([sizes[x] for x in symbols], symbols, size)))
        return out

    def given(self) -> list[fx.Node]:
        return list(dict.fromkeys(batch for batch, _, _ in self.found.values()))

    def paired(self) -> list[int]:
        """Which of the batches further arguments give the pairs of, in their order."""
        given = self.given()
        return [given.index(b) for b in self.pairs]

    # ------------------------------------------------------------- nodes

    def run(self) -> None:
        for node in self.old.graph.nodes:
            self.node, self.tracer.meta = node, node.meta
            if switches_mode(node):
                self.forget_sums()
            self.now[node] = self.taken(node)
            if _holds_rows(self.now[node]):
                self.dense_ones.add(node)
                self.memory.check_view(node)
        self.counts = self.numbers_of_graphs()
        self.graph.lint()

    def forget_sums(self) -> None:
        """What was computed in one mode of autograd is not computed again in another."""
        for places in self.places.values():
            places.sums.clear()

    def taken(self, node: fx.Node) -> Any:
        if node in self.found:
            return self.batch(node)
        if self.is_known(node):
            return None
        values = [self.now[x] for x in node.all_input_nodes]
        if not any(_holds_rows(x) for x in values):
            self.memory.check_edit(node, self.dense_ones)
            return self.copied(node)
        if node.target is operator.getitem and isinstance(self.now[node.args[0]], tuple):  # type: ignore[index]
            return self.now[node.args[0]][node.args[1]]  # type: ignore[index]
        function = function_of(call_of(node).op) if node.op != "output" else None
        if function is not None:
            try:
                return self.computed(node, function)
            except NotByRows:
                if written(node):
                    raise
        elif written(node):
            raise NotByRows("an edit of a dense batch")
        for x in node.all_input_nodes:
            if _holds_rows(self.now[x]):
                self.now[x] = self.dense(x)
        return self.copied(node)

    def is_known(self, node: fx.Node) -> bool:
        """Whether a node demands of places and graphs what rows are looked at for."""
        if not is_relation(node) or not isinstance(node.args[0], fx.Node):
            return False
        condition = node.args[0]
        if condition.target is not operator.ge:
            return False
        number, least = condition.args
        for batch, _, places in self.found.values():
            if (number is places and least == 2) or (_is_last(number, batch) and least == 0):
                return True
        return False

    def batch(self, node: fx.Node) -> tuple[Dense, Dense]:
        """Rows as they are, and the mask of those that are there."""
        batch, graphs, longest = self.found[node]
        key = (batch, graphs)
        if key not in self.places:
            self.places[key] = Places(
                self.tracer,
                self.proxy(self.now[batch]),
                self.proxy(self.now[graphs]) if isinstance(graphs, fx.Node) else graphs,
                self.proxy(self.now[longest]),
                partial(self.ask_pairs, batch),
                self.partners[batch],
            )
        of, rows = self.places[key], self.now[node.args[0]]  # type: ignore[index]
        if _holds_rows(rows):
            raise NotByRows("a dense batch of dense batches")
        x = example_of(rows)
        sizes = tuple(map(width, x.shape[1:]))
        pad = torch.full((1, *sizes), node.args[2], dtype=x.dtype)
        if self.memory.is_edited(node.args[0], since=node):  # type: ignore[arg-type]
            rows = node_of(self.proxy(rows).clone())
        axes = (GRAPH, PLACE)
        yes, no = torch.ones(1, dtype=torch.bool), torch.zeros(1, dtype=torch.bool)
        out = self.recorded(Dense(of, (*axes, *sizes), self.proxy(rows), pad))
        return out, Dense(of, axes, yes, no)

    def recorded(self, out: Any) -> Any:
        """What a node gave, without a history where autograd does not record the node: rows may be
        those of an operand."""
        if isinstance(out, tuple):
            return tuple(map(self.recorded, out))
        node = self.node
        if not isinstance(out, Dense) or node is None or self.modes.at[node]:
            return out
        if self.memory.aliases.is_same(node):  # a dropout that drops nothing, say
            return out
        rows, pad = (
            x.detach() if isinstance(x, fx.Proxy) and _has_history(x) else x
            for x in (out.rows, out.pad)
        )
        return Dense(out.of, out.axes, rows, pad)  # type: ignore[arg-type]

    def ask_pairs(self, batch: fx.Node) -> fx.Proxy:
        """Pairs of rows as a further argument."""
        if batch not in self.pairs:
            last = list(self.graph.find_nodes(op="placeholder"))[-1]
            example = _stand_in(batch)
            with self.graph.inserting_after(last):
                count = self.graph.placeholder(f"{batch.target}pairs_count")
            with self.graph.inserting_after(count):
                pairs = self.graph.placeholder(f"{batch.target}pairs")
            count.meta.update(batch.meta, example_value=example.shape[1])
            pairs.meta.update(batch.meta, example_value=example)
            self.pairs[batch] = pairs
        return self.proxy(self.pairs[batch])

    def copied(self, node: fx.Node) -> fx.Node:
        """The node itself, for what its operands have become."""
        new = self.graph.node_copy(node, lambda x: self.now[x])
        stays = (
            isinstance(example_of(node), torch.SymInt | torch.SymFloat) and node.target == "item"
        )
        if node.op.startswith("call") and not stays and self.other & set(new.all_input_nodes):
            with self.mode():
                new.meta["example_value"] = value_of(new)
            self.other.add(new)
        return new

    def proxy(self, x: fx.Node) -> fx.Proxy:
        return fx.Proxy(x, self.tracer)

    def computed(self, node: fx.Node, function: Callable[[Call], Any]) -> Any:
        form = call_of(node)
        if form.fault is not None or "out" in form.edits or len(form.edits) > 1:
            raise NotByRows(form.fault or "a result written to out=")
        base = edited(node)
        if base is not None:
            self.memory.check_edit_of_rows(node, base)
        try:
            out = _settled(self.recorded(function(self.call(node, form))))
        except NotByRows:
            raise
        except Exception as error:  # also what torch says of the new nodes' examples
            raise NotByRows(str(error)) from error
        self.other.update(x for x in _nodes_in(out))
        _check(out, example_of(node))
        if base is not None:
            self.now[base] = out
        if isinstance(out, fx.Node) and self.memory.is_edited(node):
            for places in self.places.values():
                places.sums.pop(out, None)
        return out

    def call(self, node: fx.Node, form: Canonical) -> Call:
        def traced(x: fx.Node) -> Any:
            value = self.now[x]
            return value if _holds_rows(value) else self.proxy(value)

        args, kwargs = fx.node.map_arg((node.args, node.kwargs), traced)
        arguments = fx.node.map_arg(dict(form.arguments), traced)
        value = example_of(node)
        shapes = [tuple(x.shape) for x in tensors_in(value)]
        batches = [x for x in node.all_input_nodes if _holds_rows(self.now[x])]
        of = {_dense_in(self.now[x]).of for x in batches}
        if len(of) > 1:
            raise NotByRows("dense batches of two kinds")
        kwargs = {k: v for k, v in kwargs.items() if k != "inplace"}
        function = _function(node, form)
        return Call(
            form.op,
            of.pop(),
            function,
            (args, kwargs),
            arguments,
            form.set_apart() - {"inplace"},
            shapes,
        )

    def dense(self, node: fx.Node) -> fx.Node:
        """A dense batch as the tensor that it stands for."""
        x = self.now[node]
        if isinstance(x, tuple):
            raise NotByRows("several dense batches at once")
        new = node_of(filled(x))
        self.other.add(new)
        return new


def _is_size(x: Any) -> bool:
    return isinstance(x, torch.SymInt)


def _is_counted(graphs: Any, batch: fx.Node) -> bool:
    """Whether a number of graphs is one more than the largest number in a batch, however it is
    spelled."""
    if not isinstance(graphs, fx.Node):
        return False
    size, of = expression(example_of(graphs)), torch.ops.gnnc.count_of
    return any(
        (_is_last(x, batch) and size == expression(example_of(x)) + 1)
        or (_read(x, of, batch) and size == expression(example_of(x)))
        for x in batch.graph.nodes
    )


def _is_last(x: Any, batch: fx.Node) -> bool:
    """Whether a number is the largest in a batch."""
    return _read(x, "max", batch)


def _read(x: Any, function: Any, batch: fx.Node) -> bool:
    """Whether a number is read from what a function gives of a batch."""
    of = x.args[0] if isinstance(x, fx.Node) and x.target == "item" else None
    return isinstance(of, fx.Node) and of.target == function and of.args == (batch,)


def _number(
    places: Sequence[int], symbols: Sequence[sympy.Symbol], size: sympy.Expr
) -> Callable[[Sequence[Any]], int]:
    """A size in a call, of arguments at these places."""
    of = sympy.lambdify(symbols, size, "math")
    return lambda args: of(*(args[i] for i in places))


def _fake_mode(graph: fx.Graph) -> AbstractContextManager[Any]:
    examples = map(example_of, graph.find_nodes(op="placeholder"))
    return next((x.fake_mode for x in examples if isinstance(x, FakeTensor)), nullcontext())


def _stand_in(batch: fx.Node) -> Tensor:
    """What stands for pairs in a trace, with as many as no other tensor has rows."""
    x = example_of(batch)
    if not isinstance(x, FakeTensor):
        raise NotByRows("a batch of which the trace has no stand-in")
    sizes = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.STATIC, DimDynamic.DYNAMIC])
    source = ConstantSource(f"pairs_of_{batch.name}")
    pairs = torch.zeros((2, 7), dtype=torch.int64)
    return x.fake_mode.from_tensor(pairs, symbolic_context=sizes, source=source)


def _function(node: fx.Node, form: Canonical) -> Callable[..., Any]:
    """What a node calls, without an edit in place."""
    name = form.op
    if form.edits or node.op == "call_method":
        method = str(node.target).rstrip("_") if node.op == "call_method" else name
        return lambda x, *args, **kwargs: getattr(x, method)(*args, **kwargs)
    assert callable(node.target)
    return node.target


def _has_history(x: fx.Proxy) -> bool:
    return any(t.requires_grad for t in tensors_in(example_of(x.node)))


def _holds_rows(x: Any) -> bool:
    return isinstance(x, Dense) or (isinstance(x, tuple) and any(map(_holds_rows, x)))


def _dense_in(x: Any) -> Dense:
    return x if isinstance(x, Dense) else next(_dense_in(y) for y in x if _holds_rows(y))


def _settled(out: Any) -> Any:
    """What a function gave, with nodes in the place of proxies (but for those of rows)."""
    if isinstance(out, tuple):
        return tuple(map(_settled, out))
    return node_of(out)


def _nodes_in(out: Any) -> list[fx.Node]:
    if isinstance(out, tuple):
        return [n for x in out for n in _nodes_in(x)]
    rows: Rows | fx.Node | None = out.rows if isinstance(out, Dense) else out
    return [n] if isinstance(n := node_of(rows), fx.Node) else []


def _check(out: Any, value: Any) -> None:
    """Raises NotByRows where a result has another shape or type than torch's."""
    if isinstance(out, tuple):
        for x, v in zip(out, value, strict=True):
            _check(x, v)
        return
    if out is None or not isinstance(value, Tensor):
        return
    if isinstance(out, Dense):
        wanted = [*value.shape]
        rows = out.rows if isinstance(out.rows, Tensor) else out.rows.node.meta["example_value"]
        fits = len(wanted) == out.rank and all(
            _fits(out.of, a, n) for a, n in zip(out.axes, wanted, strict=True)
        )
        fits = fits and tuple(rows.shape[1:]) == out.columns and rows.dtype == value.dtype
    else:
        found = example_of(out)
        names = [expression(n) for n in found.shape], [expression(n) for n in value.shape]
        fits = found.dtype == value.dtype and len(names[0]) == len(names[1])
    if not fits:
        raise NotByRows("a result of another shape")


def _fits(of: Places, axis: Any, size: Any) -> bool:
    if axis == GRAPH:
        return of.is_graphs(size)
    return of.is_places(size) if axis in (PLACE, KEY) else axis == size
