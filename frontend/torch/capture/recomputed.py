"""Checkpointed functions as part of what calls them.

`torch.utils.checkpoint` says that what a function makes is computed again when backward reads it.
That is for memory alone: where gnnc has a rule for all of it, the function is compiled with what
is around it, and `plan-saves` decides what is computed again. A function of which torch has to run
a part stays as it is, and keeps its memory low.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from ..importer.memory.effects import call_of, draws, written
from ..importer.rules import RULES
from ..importer.values.sizes import storage, tensors_in
from ..retraced import example_of

Backend = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]

_CHECKPOINT = torch.ops.higher_order.tag_activation_checkpoint
# what Dynamo asks and demands of sizes that only running tells
_OF_SIZES = (torch.ops.aten.sym_size.int, torch.ops.aten._assert_scalar.default)


def within(backend: Backend) -> Backend:
    """A backend that takes graphs with checkpointed functions from one that takes their nodes."""

    def taking(graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        put_within(graph)
        return backend(graph, examples)

    return taking


def put_within(graph: fx.GraphModule) -> None:
    """Puts the nodes of checkpointed functions in the place of their calls, where all have rules,
    and to run them again writes to nothing else (running statistics, which eager counts twice)."""
    found = graph.graph.find_nodes(op="call_function", target=_CHECKPOINT)
    inlined = [n for n in found if _put_within(graph, n)]
    if inlined:
        graph.graph.lint()
        graph.recompile()


def _put_within(graph: fx.GraphModule, node: fx.Node) -> bool:
    called, *args = node.args
    assert isinstance(called, fx.Node)
    body = getattr(graph, str(called.target))
    put_within(body)
    if not _is_compiled(body.graph, again=node.kwargs.get("preserve_rng_state", True) is not False):
        return False
    given = dict(zip(body.graph.find_nodes(op="placeholder"), args, strict=True))
    with graph.graph.inserting_before(node):
        results = graph.graph.graph_copy(body.graph, given)
    if isinstance(results, fx.Node):
        node.replace_all_uses_with(results)
    else:
        assert isinstance(results, Sequence)
        for user in list(node.users):
            assert user.target is operator.getitem
            result = results[user.args[1]]  # type: ignore[index]
            user.replace_all_uses_with(result)
            graph.graph.erase_node(user)
    graph.graph.erase_node(node)
    if not called.users:
        graph.graph.erase_node(called)
    return True


def _is_compiled(body: fx.Graph, again: bool) -> bool:
    """Whether a function may be compiled with others; `again`: whether what it draws is drawn a
    second time as the first."""
    own = [n for n in body.nodes if n.op not in ("placeholder", "output")]
    outside = {m for n in body.find_nodes(op="placeholder") for m in _memory(n)}
    return all(
        (call_of(n).op in RULES or n.target in _OF_SIZES)
        and (again or not draws(n))
        and all(outside.isdisjoint(_memory(x)) for x in written(n))
        for n in own
    )


def _memory(node: fx.Node) -> set[int | None]:
    return {storage(x) for x in tensors_in(example_of(node))}
