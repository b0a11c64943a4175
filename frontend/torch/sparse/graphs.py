"""Graphs of Dynamo's without matrices: their entries are what a graph takes and computes with."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, fx
from torch._dynamo.source import ConstantSource
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext
from xdsl.utils.exceptions import DiagnosticException

from ..capture.asked_sizes import answered_later
from ..importer.errors import Unsupported, node_name
from ..importer.memory.effects import switches_mode, written
from ..importer.values.sizes import expression, storage
from ..retraced import Retraced, example_of, node_of
from .combinations import SAME_SHAPE, operation
from .features import Features, NotWorth, Product
from .matrix import Matrix, unknown
from .operations import Entries, built_loosely

Backend = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]

_PARTS = ("row", "col", "value")
_Found = Mapping[int, Entries]
_Run = Callable[[Sequence[Any], _Found], Any]


def on_entries(backend: Backend, features: Features) -> Backend:
    """A backend that takes graphs with matrices, and with dense arguments that are mostly zeros,
    from one that takes graphs of dense tensors."""

    def taking(graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        places = features.places(examples)
        if places:
            return _WithFeatures(backend, graph, features, places, examples)
        return _with_dense(backend, graph, examples)

    return taking


def _with_dense(
    backend: Backend, graph: fx.GraphModule, examples: Sequence[Any]
) -> Callable[..., Any]:
    """A graph whose features are dense."""
    if not any(isinstance(example_of(n), Matrix) for n in graph.graph.nodes):
        return backend(graph, examples)
    run = backend(_Copy(graph, {}).made(), _spread(examples))
    return lambda *args: run(*_spread(args))


class _WithFeatures:
    """A graph that is compiled for dense arguments as they are in a call, mostly zeros or not;
    `places` are those of its arguments that may be features."""

    def __init__(
        self,
        backend: Backend,
        graph: fx.GraphModule,
        features: Features,
        places: Sequence[int],
        examples: Sequence[Any],
    ) -> None:
        self.backend, self.graph = backend, graph
        self.features, self.places = features, places
        self.edited = _edited(graph)
        self.programs: dict[frozenset[int], _Run] = {}
        self.dense = False
        """Whether all features stay dense."""
        if not features.among_ranks:  # else ranks choose when all of them call
            self._program(examples, self._find(examples))

    def __call__(self, *args: Any) -> Any:
        found = self._find(args)
        try:
            return self._program(args, found)(args, found)
        except (Unsupported, DiagnosticException) as reason:
            # ranks compile when they call, before anything is done
            if not found or not self.features.among_ranks:
                raise
            return self._stay_dense(args, reason)(args, {})

    def _find(self, args: Sequence[Any]) -> _Found:
        """Which arguments are taken as sparse: none in memory that the graph writes to."""
        if self.dense and not self.features.among_ranks:
            return {}
        found = self.features.of(args, self.places)
        if self.dense:
            return {}
        if not self.edited or not found:
            return found
        written_to = {storage(args[i]) for i in self.edited}
        return {i: x for i, x in found.items() if storage(args[i]) not in written_to}

    def _program(self, args: Sequence[Any], found: _Found) -> _Run:
        key = frozenset(found)
        if key not in self.programs:
            self.programs[key] = self._sparse(args, found) if found else self._dense(args)
        return self.programs[key]

    def _dense(self, args: Sequence[Any]) -> _Run:
        run = _with_dense(self.backend, self.graph, args)
        return lambda args, _: run(*args)

    def _sparse(self, args: Sequence[Any], found: _Found) -> _Run:
        nodes = list(self.graph.graph.find_nodes(op="placeholder"))
        try:
            with self._traced():
                copy = _Copy(self.graph, {nodes[i]: x for i, x in found.items()})
                made = copy.made()
            self.features.check(copy.products)
            run = self.backend(made, _spread(_with(args, found)))
        except (Unsupported, NotWorth) as reason:
            return self._stay_dense(args, reason)
        return lambda args, found: run(*_spread(_with(args, found)))

    def _traced(self) -> AbstractContextManager[None]:
        """While a graph is copied, by what Dynamo's trace knows of sizes: a rank may have one row
        where others have more."""
        return answered_later() if self.features.among_ranks else nullcontext()

    def _stay_dense(self, args: Sequence[Any], reason: object) -> _Run:
        self.features.stay_dense(reason)
        self.dense = True
        return self._program(args, {})


def _edited(graph: fx.GraphModule) -> list[int]:
    """The places of the arguments whose memory a graph writes to."""
    memory = {storage(example_of(x)) for n in graph.graph.nodes for x in written(n)}
    examples = map(example_of, graph.graph.find_nodes(op="placeholder"))
    dense = ((i, x) for i, x in enumerate(examples) if isinstance(x, FakeTensor))
    return [i for i, x in dense if storage(x) in memory]


def _with(args: Sequence[Any], found: _Found) -> list[Any]:
    return [found.get(i, x) for i, x in enumerate(args)]


def _spread(args: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for x in args:
        if isinstance(x, Matrix | Entries):
            for part in (x.row, x.col, x.value):
                out += [part.size(0), part]
        else:
            out.append(x)
    return out


def _stand_in(node: fx.Node, features: Matrix) -> Entries:
    """What stands for features in a trace, with as many entries as no other tensor has rows."""
    x = example_of(node)
    if not isinstance(x, FakeTensor):
        raise NotByEntries(node, "features of which the trace has no stand-in")
    some = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
    source = ConstantSource(f"entries_of_{node.name}")
    # of no entries or one torch would make a constant
    numbers = features.row if len(features.row) > 1 else features.row.new_empty(2)
    row = x.fake_mode.from_tensor(numbers, symbolic_context=some, source=source)
    value = row.new_empty(row.shape, dtype=x.dtype)
    rows, columns = x.shape
    if TracingContext.try_get() is not None and not isinstance(columns, int):
        # what stands beside them may have made it a difference of two symbols, of which a guard
        # makes a number
        columns = columns if expression(columns).is_Symbol else int(columns)
    return Entries(row, row.new_empty(row.shape), value, (rows, columns), torch.strided)


def _shape(node: fx.Node) -> list[Any]:
    return [expression(n) for n in example_of(node).shape]


def _products(node: fx.Node) -> list[Product]:
    """The product that a node is, where the first call tells its sizes: one that is read from data
    (the number of classes of `one_hot`) is known in no call before it runs."""
    _, _, value, x, rows, _ = (example_of(n) if isinstance(n, fx.Node) else n for n in node.args)
    sizes = [_number(n) for n in (rows, value.shape[0], *x.shape)]
    known = [n for n in sizes if n is not None]
    if len(known) < len(sizes):
        return []
    rows, entries, columns, *widths = known
    return [Product(rows * columns, entries, math.prod(widths), value.element_size())]


def _number(size: int | torch.SymInt) -> int | None:
    """A size in the first call, of which no guard is made."""
    return size.node.hint if isinstance(size, torch.SymInt) else size


class NotByEntries(Unsupported):
    """A graph does something with a sparse matrix that cannot be said of its entries."""


class _Copy:
    """A copy of a graph, in which a matrix is the nodes of its entries. `features` are dense
    arguments that are to be matrices."""

    def __init__(self, old: fx.GraphModule, features: Mapping[fx.Node, Matrix]) -> None:
        self.old, self.features = old, features
        self.graph = fx.Graph()
        self.tracer = Retraced(self.graph, self.unguarded)
        self.now: dict[fx.Node, Any] = {}  # a node, or the entries of a matrix
        self.products: list[Product] = []
        self.loose: set[Any] = set()  # numbers of entries whose order no result may show
        self.edits = 0  # nodes so far that change what others read, or what autograd records
        self.combined: dict[fx.Node, int] = {}  # how many of them were before a combination

    def made(self) -> fx.GraphModule:
        for node in self.old.graph.nodes:
            self.edits += bool(written(node)) or switches_mode(node)
            matrix = isinstance(example_of(node), Matrix)
            if node in self.features:
                self.now[node] = self.argument(node, _stand_in(node, self.features[node]))
            elif node.op == "placeholder" and matrix:
                self.now[node] = self.argument(node, example_of(node))
            elif matrix or any(isinstance(self.now[x], Entries) for x in node.all_input_nodes):
                self.now[node] = self.computed(node)
            elif node.target is torch.ops.gnnc.index_of_pointer and self.from_index(node):
                self.now[node] = self.from_index(node)
            else:
                self.now[node] = self.graph.node_copy(node, self.now.__getitem__)
            if node.op == "output":
                self.check_results(node)
        self.graph.lint()
        return fx.GraphModule(self.old, self.graph)

    def from_index(self, node: fx.Node) -> fx.Node | None:
        """The index that the pointer was made of, which is made of that again."""
        made = self.now[node.args[0]]  # type: ignore[index]
        return made.args[0] if made.target is torch.ops.gnnc.pointer else None

    def argument(self, node: fx.Node, matrix: Matrix | Entries) -> Entries:
        """A matrix as further arguments, for which this one stands in a trace."""
        parts = []
        for name in _PARTS:
            part = getattr(matrix, name)
            # Dynamo counts each of them by a symbol of its own, until they meet
            for what, example in ((f"{name}s", part.size(0)), (name, part)):
                new = self.graph.placeholder(f"{node.target}{what}")
                new.meta.update(node.meta, example_value=example, matrix=example_of(node))
            parts.append(new)
        shape = tuple(self.size(node, n) for n in matrix.shape)
        return Entries(*parts, shape, matrix.like, matrix.ordered)

    def check_results(self, output: fx.Node) -> None:
        """Raises NotByEntries where a result has a row for each of entries in no order."""
        for node in output.all_input_nodes:
            x = example_of(node)
            if isinstance(x, Tensor) and self.loose & set(map(str, x.shape)):
                raise NotByEntries(node, "a row for each entry of a matrix with added loops")

    def size(self, of: fx.Node, n: int | torch.SymInt) -> Any:
        """A size as a number, or as the placeholder that Dynamo has made for it."""
        size = expression(n)
        if size.is_Integer:
            return int(size)
        for node, now in self.now.items():
            known = example_of(node)
            if isinstance(known, torch.SymInt) and expression(known) == size:
                return now
        raise NotByEntries(of, f"{n} rows or columns of a sparse matrix are no argument")

    def computed(self, node: fx.Node) -> Any:
        """What a function makes of matrices, as nodes."""
        if node.op == "output":
            results = (x for x in node.all_input_nodes if isinstance(self.now[x], Entries))
            what = "a sparse matrix is a result (return its values, or a product with it)"
            raise NotByEntries(next(results), what)
        if any(self.combined.get(x, self.edits) != self.edits for x in node.all_input_nodes):
            what = "features that were combined before an edit in place or in another grad mode"
            raise NotByEntries(node, what)
        given = [self.now[x] for x in node.all_input_nodes]
        found = operation(_function(node), [x for x in given if isinstance(x, Entries)])
        if found is None:
            raise NotByEntries(node, unknown(node_name(node)))
        before, self.tracer.meta = len(self.graph.nodes), node.meta
        args, kwargs = fx.node.map_arg((_arguments(node), node.kwargs), self.traced)
        try:
            out = found(*args, **kwargs)
        except Exception as error:  # also what torch says of the new nodes' examples
            raise NotByEntries(node, str(error)) from error
        self.products += [
            product
            for new in list(self.graph.nodes)[before:]
            if new.target is torch.ops.gnnc.sparse_matmul
            for product in _products(new)
        ]
        if not isinstance(out, Entries):
            return self.checked(node, node_of(out))
        out = Entries(*map(node_of, out[:3]), tuple(map(node_of, out.shape)), *out[4:])
        if found is built_loosely:
            self.loose.add(str(example_of(out.value).shape[0]))
        if out.times is not None:
            self.combined[node] = self.edits
            if found in SAME_SHAPE and any(_shape(x) != _shape(node) for x in self.entries(node)):
                raise NotByEntries(node, "features whose rows are repeated")
        return out

    def entries(self, node: fx.Node) -> list[fx.Node]:
        """The operands that are matrices."""
        return [x for x in node.all_input_nodes if isinstance(self.now[x], Entries)]

    def checked(self, node: fx.Node, new: Any) -> Any:
        """What takes the place of a node, where it is for the examples what dense features give."""
        if self.features and isinstance(example_of(node), FakeTensor):
            if _shape(new) != _shape(node) or example_of(new).dtype != example_of(node).dtype:
                raise NotByEntries(node, "a shape or type that dense features do not give")
        return new

    def unguarded(self) -> AbstractContextManager[None]:
        """Where no guard is made: nobody could check one of how many entries features have, and
        what dense ones need has been guarded when they were traced."""
        modes = (example_of(n).fake_mode for n in self.features)
        env = next((m.shape_env for m in modes), None)
        return nullcontext() if env is None else env.suppress_guards()

    def traced(self, x: fx.Node) -> Any:
        """What a node has become, as something that notes the functions it is given to."""
        new = self.now[x]
        if isinstance(new, Entries):
            return Entries(*map(self.proxy, new[:3]), tuple(map(self.proxy, new.shape)), *new[4:])
        return self.proxy(new)

    def proxy(self, x: Any) -> Any:
        return fx.Proxy(x, self.tracer) if isinstance(x, fx.Node) else x


def _function(node: fx.Node) -> Any:
    """What a node calls, as `OPERATIONS` has it."""
    if node.op == "call_method":
        return getattr(Tensor, str(node.target), None)
    if node.target is getattr:
        return getattr(getattr(Tensor, str(node.args[1]), None), "__get__", None)
    return torch.matmul if node.target is operator.matmul else node.target


def _arguments(node: fx.Node) -> tuple[Any, ...]:
    return node.args[:1] if node.target is getattr else node.args
