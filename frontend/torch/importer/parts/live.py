"""Which nodes of a graph somebody needs."""

from __future__ import annotations

from torch import fx

from ..errors import node_name
from ..memory.aliases import Aliases
from ..memory.effects import MODES, draws, is_assertion, written


def live_nodes(graph: fx.Graph, aliases: Aliases) -> set[fx.Node]:
    """The nodes that outputs or effects need. Dead ones may be beyond us (EdgeIndex's CSR).

    An edit is needed where the caller may read the memory that it writes, or a node that is needed
    itself: also an earlier one, whose backward may read it again (after an edit through `.data`).
    """
    live: set[fx.Node] = set()
    given = (n for n in graph.nodes if n.op in ("placeholder", "get_attr"))
    read = {key for n in given for key in aliases.memory(n)}
    before = -1
    while before < len(live):
        before = len(live)
        for node in reversed(graph.nodes):
            if _is_needed(node, live, read, aliases):
                live.add(node)
                read.update(key for x in node.all_input_nodes for key in aliases.memory(x))
    return live


def _is_needed(node: fx.Node, live: set[fx.Node], read: set[int], aliases: Aliases) -> bool:
    if acts(node) or any(user in live for user in node.users):
        return True
    memory = [aliases.memory(x) for x in written(node)]
    return bool(memory) and (draws(node) or not all(m and read.isdisjoint(m) for m in memory))


def acts(node: fx.Node) -> bool:
    """Whether a node is for more than its result and what it writes."""
    if node.op in ("placeholder", "output"):
        return True
    return node_name(node) in MODES or is_assertion(node) or _runs_a_body(node)


def _runs_a_body(node: fx.Node) -> bool:
    """Whether a node calls a function that is a graph of its own, which may do anything."""
    called = node.args[0] if node.args else None
    if not isinstance(called, fx.Node) or called.op != "get_attr":
        return False
    return isinstance(getattr(node.graph.owning_module, str(called.target), None), fx.GraphModule)
