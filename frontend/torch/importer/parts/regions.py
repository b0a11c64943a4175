"""Which nodes of a graph run in torch: those without a meaning, and with an edit that is torch's
all that touches the same memory, from where it is made to the last edit. What reads it afterwards
finds the numbers, and the history, in the tensor itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import fx

from ..errors import Unsupported, node_name
from ..memory.aliases import Aliases
from ..memory.effects import draws, written
from ..memory.history import SavedWasEdited, check_edits
from ..walk import Walk

Refused = dict[fx.Node, Unsupported]


class Regions:
    """The nodes of a graph that torch has to run, each with its reason. Raises `Unsupported` where
    an edit cannot be told: then that is the whole graph."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.aliases = Aliases(graph)
        self.outside: Refused = {}
        try:
            check_edits(graph, self.aliases)
        except SavedWasEdited as error:
            for key in self.aliases.edits:
                self.leave(key, error)

    def refused(self) -> Refused:
        """All that has to run in torch.

        Raises:
            Unsupported: that is the whole graph.
        """
        while True:
            try:
                walk = Walk(self.graph, tolerant=True, float_masks=False, outside=set(self.outside))
                return walk.run().refused | self.outside
            except Unsupported as error:
                grown = len(self.outside)
                for base in () if error.node is None else written(error.node):
                    for key in self.aliases.memory(base):
                        self.leave(key, error)
                if len(self.outside) == grown:
                    raise

    def leave(self, key: int, reason: Unsupported) -> None:
        """Torch runs what touches this memory, up to its last edit."""
        keys, done = [key], set[int]()
        while keys:
            key = keys.pop()
            if key in done or key not in self.aliases.edits:
                continue
            done.add(key)
            for node in self.touching(key):
                self.outside.setdefault(node, reason)
                keys += [k for base in written(node) for k in self.aliases.memory(base)]

    def touching(self, key: int) -> list[fx.Node]:
        """The nodes that make, read or edit a piece of memory, up to its last edit."""
        last = max(self.aliases.order[n] for n in self.aliases.edits[key])
        return [n for n in self.touching_ever(key) if self.aliases.order[n] <= last]

    def leave_crossing(self, numbers: dict[fx.Node, int], refused: Refused) -> bool:
        """Leaves memory to torch that one part edits and a compiled one touches before: it may have
        kept the tensor for its backward. Whether there was any."""
        grown = len(self.outside)
        for key, edits in self.aliases.edits.items():
            nodes = self.touching(key)
            if len({numbers[n] for n in nodes}) > 1 and any(n not in refused for n in nodes):
                message = "it edits memory that a part in torch needs as well"
                self.leave(key, Unsupported(edits[-1], message))
        return len(self.outside) > grown

    def leave_numbers(self, nodes: Iterable[fx.Node]) -> bool:
        """Leaves to torch what of these nodes reads a number out of a tensor, whose kernels count
        rows by it: a part that is told the number can be compiled. Whether there was any."""
        grown = len(self.outside)
        for node in nodes:
            if node_name(node) == "item":
                reason = Unsupported(node, "a number that counts rows, and that only running tells")
                self.outside.setdefault(node, reason)
        return len(self.outside) > grown

    def earlier(self, refused: Refused) -> dict[fx.Node, list[fx.Node]]:
        """For each node those that have to run before it though it reads nothing of theirs: edits
        and readers of the same memory, and what draws random numbers of torch's."""
        out: dict[fx.Node, list[fx.Node]] = {}
        groups = [self.touching_ever(key) for key in self.aliases.edits]
        for nodes, edits in zip(groups, self.aliases.edits.values(), strict=True):
            _in_turns(nodes, set(edits), out)
        drawing = [n for n in self.graph.nodes if draws(n) and n in refused]
        _in_turns(drawing, set(drawing), out)
        return out

    def touching_ever(self, key: int) -> list[fx.Node]:
        tensors = self.aliases.sharing[key]
        users = {u for n in tensors for u in n.users} | {*tensors}
        called = (n for n in users if n.op.startswith("call"))
        return sorted(called, key=self.aliases.order.__getitem__)


def _in_turns(
    nodes: Iterable[fx.Node], edits: set[fx.Node], out: dict[fx.Node, list[fx.Node]]
) -> None:
    """Readers come after the last edit, an edit after all readers."""
    edit: fx.Node | None = None
    readers: list[fx.Node] = []
    for node in nodes:
        before = [edit] if edit is not None else []
        out.setdefault(node, []).extend(before)
        if node in edits:
            out[node] += readers
            edit, readers = node, []
        else:
            readers.append(node)
