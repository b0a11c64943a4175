"""Who shares memory with whom in a graph: told by the storages of fake tensors, not by names.

A tensor whose example lies in the memory of one of its node's operands is a *view* of that operand,
whichever function gave it; the tensor that an edit in place returns is the edited one. Views lead
to a *root*: what made the memory, or the placeholder that brought it in.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, fx

from ..errors import Reject
from ..values.sizes import example, expression, storage
from .effects import call_of, passes_on, written
from .layouts import Layouts


def same_place(a: object, b: object) -> bool:
    """Whether two example tensors are the same numbers of the same memory, in the same order."""
    return (
        isinstance(a, Tensor)
        and isinstance(b, Tensor)
        and storage(a) == storage(b)
        and a.dtype == b.dtype
        and _geometry(a) == _geometry(b)
    )


def _geometry(x: Tensor) -> tuple[object, ...]:
    numbers = (*x.shape, *x.stride(), x.storage_offset())
    return (x.dim(), *map(expression, numbers))


class Aliases:
    """The memory of one graph.

    `sharing` are the tensors (nodes that give one or several) of each storage, in order; `edits`
    those nodes that write to it. A dropout that drops nothing hands its operand on, and some
    reshapes are views, which fake tensors do not tell: `joined` are the storages that are another
    one by it.

    Raises:
        Unsupported: a view that only running the program tells.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self.order = {n: i for i, n in enumerate(graph.nodes)}
        self.joined: dict[int, int] = {}
        self.sharing: dict[int, list[fx.Node]] = {}
        self.edits: dict[int, list[fx.Node]] = {}
        self._memory: dict[fx.Node, frozenset[int]] = {}
        self._sources: dict[fx.Node, fx.Node | None] = {}
        self._same: set[fx.Node] = set()
        self.layouts = Layouts(graph)
        for node in graph.nodes:
            if node.op != "output":
                self._add(node)

    def _add(self, node: fx.Node) -> None:
        handed_on = passes_on(node)
        if handed_on is not None:
            self.layouts.handed_on(node, handed_on)
        seen = handed_on or self.layouts.operand(node)
        mine, whole = storage(example(node)), None if seen is None else self.key(seen)
        if mine is not None and whole is not None and mine != whole:
            self.joined[mine] = whole
        value = example(node)
        values = value if isinstance(value, tuple | list) else (value,)
        keys = (storage(v) for v in values)
        self._memory[node] = frozenset(self.joined.get(k, k) for k in keys if k is not None)
        for key in self._memory[node]:
            self.sharing.setdefault(key, []).append(node)
        for key in {k for base in written(node) for k in self.memory(base)}:
            self.edits.setdefault(key, []).append(node)
        if self._memory[node] and node.op.startswith("call"):
            self._sources[node] = self._source(node, handed_on)

    # --------------------------------------------------------------- memory

    def memory(self, node: fx.Node) -> frozenset[int]:
        """The storages behind the tensors that a node gives."""
        return self._memory.get(node, frozenset())

    def key(self, node: fx.Node) -> int | None:
        """The storage of the tensor that a node is."""
        key = storage(example(node))
        return None if key is None else self.joined.get(key, key)

    # ---------------------------------------------------------------- links

    def source(self, node: fx.Node) -> fx.Node | None:
        """What a node's tensor is a view of; None of a root."""
        return self._sources.get(node)

    def _source(self, node: fx.Node, handed_on: fx.Node | None) -> fx.Node | None:
        value = example(node)
        for base in (handed_on, *written(node)):
            if base is not None and (base is handed_on or same_place(example(base), value)):
                self._same.add(node)
                return base
        if isinstance(value, tuple | list):
            return self._source_of_all(node)
        for operand in node.all_input_nodes:
            if self.key(node) not in self.memory(operand):
                continue
            if example(operand) is value:  # contiguous, of what is
                self._same.add(node)
            if isinstance(example(operand), Tensor) or self._source_of_all(operand) is not None:
                return operand
            # an item of a tuple: perhaps an operand of the call that gave the tuple
            given = (x for x in operand.all_input_nodes if same_place(example(x), value))
            source = next(given, None)
            if source is not None:
                self._same.add(node)
            return source
        return None

    def _source_of_all(self, node: fx.Node) -> fx.Node | None:
        """The tensor that all items of a tuple are views of: chunks, say."""
        keys = self.memory(node)
        if len(keys) != 1 or not node.op.startswith("call"):
            return None
        return next((x for x in node.all_input_nodes if self.memory(x) == keys), None)

    def is_same(self, node: fx.Node) -> bool:
        """Whether a node gives the very tensor that is its `source`: an edit, or a call that hands
        an operand on."""
        return node in self._same

    def itself(self, node: fx.Node) -> fx.Node:
        """The first node that is the same tensor object."""
        while self.is_same(node):
            source = self.source(node)
            assert source is not None
            node = source
        return node

    def chain(self, node: fx.Node) -> list[fx.Node]:
        """The root of a tensor, and the views that lead from it to the tensor, in order."""
        out: list[fx.Node] = []
        while True:
            node = self.itself(node)
            out.append(node)
            source = self.source(node)
            if source is None:
                return out[::-1]
            node = source

    def root(self, node: fx.Node) -> fx.Node:
        return self.chain(node)[0]

    # --------------------------------------------------------------- sharing

    def alike(self, node: fx.Node) -> Iterator[fx.Node]:
        """The nodes that give tensors in the same memory, `node` too."""
        for key in self.memory(node):
            yield from self.sharing[key]

    def views(self, root: fx.Node, before: fx.Node) -> list[fx.Node]:
        """All that is a view of a root by the time that `before` runs.

        Raises:
            Reject: another tensor shares the memory, and no view leads to it.
        """
        out: list[fx.Node] = []
        for node in self.alike(root):
            if self.itself(node) is not node or node is root:
                continue
            # a placeholder is there from the start; what comes later reads the new values anyhow
            if node.op != "placeholder" and self.order[node] >= self.order[before]:
                continue
            if isinstance(example(node), tuple | list) and self.source(node) is None:
                continue  # results of one call, of which this is the memory of one
            if self.root(node) is not root:
                raise Reject(f"it edits memory that {node.name} shares, and no view tells how")
            out.append(node)
        return out

    def unseen(self) -> fx.Node | None:
        """An argument that a function edited which gnnc does not know: its version tells. (It may
        also count what was done to make it an example.)"""
        calls = [n for n in self.order if n.op.startswith("call")]
        unknown = [n for n in calls if (call := call_of(n)) is not None and call.fault is not None]
        touched = {k for n in unknown for x in n.all_input_nodes for k in self.memory(x)}
        for node in self.order:
            seen = self.memory(node).isdisjoint(touched.difference(self.edits))
            if node.op == "placeholder" and not seen and example(node)._version:
                return node
        return None
