"""Edits in place: which nodes make them, and whether they can be followed.

A tensor that is edited becomes a new value for every later reader. That is right when no other
tensor shares its memory and is read afterwards; fake tensors tell who shares memory.
"""

from __future__ import annotations

from torch import Tensor, fx

from .errors import Reject, node_name
from .sizes import example

IN_PLACE_OPERATORS = {"iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior"}


def edited(node: fx.Node) -> fx.Node | None:
    """The node of the tensor that an in-place call edits (its first argument), or None."""
    if not node.op.startswith("call") or not node.args or not isinstance(node.args[0], fx.Node):
        return None
    name = node_name(node)
    in_place_name = name.endswith("_") and not name.endswith("__") and name != "requires_grad_"
    if name == "setitem" or name in IN_PLACE_OPERATORS or node.kwargs.get("inplace") is True:
        return node.args[0]
    if in_place_name and name not in ("and_", "or_", "is_"):
        return node.args[0]
    return None


def has_effect(node: fx.Node) -> bool:
    """Whether a node does more than give its result."""
    if node.op in ("placeholder", "output"):
        return True
    name = node_name(node)
    return (
        edited(node) is not None
        or (name == "batch_norm" and _training(node))
        or node.kwargs.get("out") is not None
        or name in ("_set_grad_enabled", "_enter_autocast", "_exit_autocast")
    )


def _training(node: fx.Node) -> bool:
    training = node.args[5] if len(node.args) > 5 else node.kwargs.get("training", False)
    return training is not False


def plain_name(name: str) -> str:
    """The function that an in-place name edits with: `add` of `add_` and of `iadd`."""
    if name in IN_PLACE_OPERATORS:
        return {"iand": "and_", "ior": "or_"}.get(name, name[1:])
    return name.removesuffix("_") if name not in ("and_", "or_") else name


def live_nodes(graph: fx.Graph) -> set[fx.Node]:
    """The nodes that outputs or effects need. Dead ones may be beyond us (EdgeIndex's CSR)."""
    live: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if has_effect(node) or any(user in live for user in node.users):
            live.add(node)
    return live


def storage(node: fx.Node) -> int | None:
    """The identity of the memory behind a node's example tensor."""
    value = example(node)
    return value.untyped_storage()._cdata if isinstance(value, Tensor) else None


class Aliases:
    """The tensors of a graph by memory, and which nodes are one and the same tensor."""

    def __init__(self, graph: fx.Graph) -> None:
        self.order = {n: i for i, n in enumerate(graph.nodes)}
        self.same: dict[fx.Node, list[fx.Node]] = {}
        self.sharing: dict[int, list[fx.Node]] = {}
        for node in graph.nodes:
            key = storage(node) if node.op != "output" else None
            if key is not None:
                self.sharing.setdefault(key, []).append(node)

    def identical(self, node: fx.Node) -> list[fx.Node]:
        """The nodes that are the same tensor object as `node`."""
        return self.same.setdefault(node, [node])

    def join(self, node: fx.Node, base: fx.Node) -> None:
        """`node` is what an edit of `base` returned: the same tensor."""
        group = self.identical(base)
        if node not in group:
            group.append(node)
        self.same[node] = group

    def check(self, node: fx.Node, base: fx.Node) -> None:
        """Raises Reject where another tensor that shares the memory of `base`, which `node` edits,
        is read afterwards or belongs to the caller."""
        key = storage(base)
        if key is None:
            raise Reject("an edit of something that is no tensor")
        now = self.order[node]
        group = self.identical(base)
        for other in self.sharing.get(key, []):
            if other in group or other is node or self.order[other] > now:
                continue
            if self._written_back(node, other):
                continue
            if other.op == "placeholder" or any(self.order[u] > now for u in other.users):
                raise Reject(f"it edits a tensor whose memory {other.name} shares")

    def _written_back(self, node: fx.Node, other: fx.Node) -> bool:
        """`x[i] += y` reads an item, edits it and assigns it back to x: that assignment counts."""
        if node_name(node) not in IN_PLACE_OPERATORS:
            return False
        return any(
            node_name(u) == "setitem" and u.args[0] is other and u.args[2] is node
            for u in node.users
        )
