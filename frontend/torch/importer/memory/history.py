"""Autograd's view of edits: where the value that an edit leaves, as a function of what was there
before, has the gradient that torch computes.

It has where no tensor of that memory takes part in autograd, or all of them do in one and the same
way. Under `no_grad`, through `detach` and `.data` torch changes the numbers and keeps the history:
no function says that.
"""

from __future__ import annotations

import functools
from collections import deque
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ..errors import Unsupported, node_name
from ..values.sizes import example, storage, tensors_in
from .aliases import Aliases
from .effects import GRAD_MODE, call_of, passes_on


class GradModes:
    """Whether autograd records, at each node of a graph. The graph starts in the mode in which it
    is imported: Dynamo guards on it."""

    def __init__(self, graph: fx.Graph) -> None:
        self.outside = mode = torch.is_grad_enabled()
        self.at: dict[fx.Node, bool] = {}
        for node in graph.nodes:
            if node.op.startswith("call") and node_name(node) == GRAD_MODE:
                mode = bool(node.args[0])
            self.at[node] = mode

    @property
    def records(self) -> bool:
        """Whether any node is recorded."""
        return self.outside or any(self.at.values())

    @functools.cached_property
    def hides_history(self) -> bool:
        """Whether an example shows no history where the tensor has one: of a dropout that hands its
        operand on, under no_grad, fake tensors make another tensor."""
        handed_on = ((passes_on(n), on) for n, on in self.at.items())
        return any(x is not None and takes_part(x) and not on for x, on in handed_on)

    def turned_on(self, node: fx.Node) -> bool:
        """Whether a node is recorded by its own choice, in a call that is not."""
        return self.at[node] and not self.outside


def takes_part(node: fx.Node) -> bool:
    """Whether the tensor that a node gives is part of autograd's graph, in the end."""
    return any(x.requires_grad for x in tensors_in(example(node)))


def is_unrecorded_view(node: fx.Node, aliases: Aliases, modes: GradModes) -> bool:
    """Whether a node gives a view that was made under no_grad and takes part all the same: to
    autograd it is a tensor with a gradient of its own."""
    view = aliases.source(node) is not None and not aliases.is_same(node)
    return view and not modes.at[node] and modes.records and takes_part(node)


def reason_to_keep(node: fx.Node, base: fx.Node, aliases: Aliases, modes: GradModes) -> str | None:
    """Why the edit that `node` makes of `base` has to be torch's, or None."""
    root, *views = aliases.chain(base)
    if root.op == "placeholder" and any(call_of(v).spelled == "Tensor.data" for v in views):
        return f"it edits {root.name} through .data, where the version of {root.name} stays"
    sharing = {aliases.itself(n) for n in aliases.alike(base) if _is_one(n)}
    part = [n for n in sharing if takes_part(n)]
    if not modes.records:
        return None
    name = root.name
    if modes.hides_history and example(base).is_floating_point():
        return f"it edits {name}, which may have a gradient that a dropout has handed on"
    if not part:
        return None
    # of detached views: an edit may have given them a history since
    detached = any(call_of(n).op == "detach" for n in sharing)
    if not modes.at[node] or len(part) < len(sharing) or detached:
        return (
            f"it edits {name}, which has a gradient, under no_grad or through detach() or .data: "
            "its history stays as it was"
        )
    if any(not modes.at[n] for n in sharing if n.op != "placeholder"):
        return f"it edits {name}, of which a view was made under no_grad"
    before = [n for n in aliases.alike(base) if aliases.order[n] < aliases.order[node]]
    if any(aliases.key(n) != storage(example(n)) for n in before if _is_one(n)):
        return f"it edits {name}, which a dropout has handed on"
    if _may_save(node, base, aliases):
        return f"it edits {name}, of which an edit before may need the numbers"
    return None


def _is_one(node: fx.Node) -> bool:
    return isinstance(example(node), Tensor)


SAVES_NOTHING = {"add", "sub", "neg", "setitem", "copy", "fill", "zero", "index_add", "scatter_add"}


def _may_save(node: fx.Node, base: fx.Node, aliases: Aliases) -> bool:
    """Whether another edit follows one made through a view that keeps numbers for its backward.
    Torch raises then, and the examples do not tell (CopySlices hides what it runs)."""
    (key,) = aliases.memory(base)
    *_, last = aliases.edits[key]
    if last is node or len(aliases.chain(base)) == 1:
        return False
    call = call_of(node)
    if call.op in SAVES_NOTHING:
        return False
    by_number = not isinstance(call.arguments.get("other"), fx.Node)
    return not (call.op in ("mul", "div") and by_number)


class SavedWasEdited(Unsupported):
    """Backward needs numbers from before an edit: torch is to say so."""


def check_edits(graph: fx.Graph, aliases: Aliases) -> None:
    """What has to hold of a whole graph before its edits are followed one by one.

    Raises:
        Unsupported: a call that is not known to be an edit makes one.
        SavedWasEdited: backward of the results needs a tensor that was edited since; torch will
            raise.
    """
    unseen = aliases.unseen()
    if unseen is not None:
        raise Unsupported(unseen, "it is edited by a call that gnnc does not know", True)
    if aliases.edits and GradModes(graph).records and _saved_was_edited(graph):
        (edit, *_), *_ = aliases.edits.values()
        raise SavedWasEdited(edit, "backward needs numbers from before this edit, or another", True)


def _saved_was_edited(graph: fx.Graph) -> bool:
    ends = [*graph.find_nodes(op="placeholder"), *graph.output_node().all_input_nodes]
    roots = [x for n in ends for x in tensors_in(example(n))]
    try:
        todo = deque(f for x in roots if (f := x.grad_fn) is not None)
    except RuntimeError:  # of a view made under no_grad, of what was edited outside
        return True
    seen: set[Any] = set()
    while todo:
        function = todo.popleft()
        if function in seen:
            continue
        seen.add(function)
        todo.extend(f for f, _ in function.next_functions if f is not None)
        if _has_lost(function):
            return True
    return False


def _has_lost(function: Any) -> bool:
    """Whether a node of autograd's graph cannot get at what it saved."""
    for name in dir(function):
        if name.startswith("_saved") or name == "saved_tensors":
            try:
                getattr(function, name)
            except GuardOnDataDependentSymNode:  # it cannot say how large what was edited is
                return True
            except RuntimeError as error:
                if "modified by an inplace operation" in str(error):
                    return True
    return False
