"""Which nodes of a graph somebody needs."""

from __future__ import annotations

from torch import fx

from .aliases import Aliases
from .effects import MODES, draws, is_assertion, written
from .errors import node_name


def live_nodes(graph: fx.Graph, aliases: Aliases) -> set[fx.Node]:
    """The nodes that outputs or effects need. Dead ones may be beyond us (EdgeIndex's CSR).

    An edit is needed where the caller may read the memory that it writes, or a later node that is
    needed itself.
    """
    live: set[fx.Node] = set()
    given = (n for n in graph.nodes if n.op in ("placeholder", "get_attr"))
    read = {key for n in given for key in aliases.memory(n)}
    for node in reversed(graph.nodes):
        memory = [aliases.memory(x) for x in written(node)]
        seen = bool(memory) and (draws(node) or not all(map(read.isdisjoint, memory)))
        if seen or acts(node) or not all(memory) or any(user in live for user in node.users):
            live.add(node)
            read.update(key for x in node.all_input_nodes for key in aliases.memory(x))
    return live


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
