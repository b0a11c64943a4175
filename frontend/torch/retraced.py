"""Graphs of Dynamo's that are written anew: functions that are called on proxies become nodes, each
with what it gives for the examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import fx
from torch.fx.proxy import GraphAppendingTracer


class Retraced(GraphAppendingTracer):
    """Notes calls in a graph. `meta` is what a new node takes from the one that it is made for;
    examples are computed within `context`."""

    def __init__(
        self,
        graph: fx.Graph,
        context: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        super().__init__(graph)
        self.meta: Mapping[str, Any] = {}
        self.context = context

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        node = super().create_node(*args, **kwargs)
        with self.context():
            node.meta.update(self.meta, example_value=value_of(node))
        return node

    def called(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> fx.Proxy:
        """A call that no proxy is an argument of."""
        return self.create_proxy("call_function", function, args, kwargs)


def value_of(node: fx.Node) -> Any:
    """What a new node gives for the examples."""
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), example_of)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    return node.target(*args, **kwargs)


def example_of(node: fx.Node) -> Any:
    return node.meta.get("example_value")


def node_of(x: Any) -> Any:
    """The node behind a proxy; anything else as it is."""
    return x.node if isinstance(x, fx.Proxy) else x
