"""What graphs of Dynamo's do where torch runs them: as the user's code does it.

Dynamo writes some statements as operations for compilers, which mean something else when they run
eagerly; they are replaced before anything else looks at a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor, fx
from torch._C._functorch import is_functorch_wrapped_tensor

from ..importer.errors import Unsupported
from ..importer.values.sizes import example, tensors_in
from .devices import why_not_on

_NO_MESSAGE = "assertion error"
"""What Dynamo says where the user's code says nothing."""


def assert_holds(condition: Tensor, message: str = "") -> None:
    """What `assert condition, message` does.

    Raises:
        AssertionError: the tensor's number is 0.
    """
    if not condition:
        raise AssertionError(message)


def checkpoint(body: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Activation checkpointing. Only what a gradient is for is an argument: Dynamo makes arguments
    of buffers too, and a norm that counts its calls changes what was saved of them."""
    wanting = [isinstance(x, Tensor) and x.requires_grad for x in args]

    def run(*inputs: Any) -> Any:
        given = iter(inputs)
        return body(*(next(given) if want else x for x, want in zip(args, wanting, strict=True)))

    inputs = [x for x, want in zip(args, wanting, strict=True) if want]
    return torch.utils.checkpoint.checkpoint(run, *inputs, **options)


def as_written(graph: fx.GraphModule) -> None:
    """Puts what the user's code does in the place of Dynamo's operations for compilers. What Dynamo
    demands of sizes comes last: an operation that needs it has eager's exception."""
    last = graph.graph.output_node()
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is torch.ops.aten._assert_scalar.default:
            last.prepend(node)
        elif node.target is torch._assert_async:
            node.target = assert_holds
            if node.args[1:] == (_NO_MESSAGE,):
                node.args = node.args[:1]
        elif node.target is torch.ops.higher_order.tag_activation_checkpoint:
            node.target = checkpoint
    graph.recompile()


def runner_of(graph: fx.GraphModule) -> Callable[..., Any]:
    """What runs a graph in torch. (A call of a `GraphModule` prints to stderr where it raises, and
    so does its `forward` as long as its code is not there, which asking for it sees to.)"""
    _ = graph.code
    return graph.forward


class WholeInTorch(Unsupported):
    """Torch runs all of the graph: what refuses it is not in the reach of a cut."""

    def __init__(self, node: fx.Node, reason: str) -> None:
        super().__init__(node, reason, mutates=True)


def check_transforms(graph: fx.GraphModule) -> None:
    """
    Raises:
        WholeInTorch: a tensor lives within a transform of torch.func, which has no memory of its
            own, and no meaning between the nodes that begin and end the transform.
    """
    for node in graph.graph.nodes:
        if any(is_functorch_wrapped_tensor(x) for x in tensors_in(example(node))):
            raise WholeInTorch(node, "a tensor within a transform of torch.func")


def device_of(graph: fx.GraphModule, backend: str = "auto") -> str:
    """Where all tensors of a graph are, as torch spells it; `backend` is the option of that name.

    Raises:
        WholeInTorch: a tensor is where no program runs, or elsewhere than others.
    """
    first: torch.device | None = None
    for node in graph.graph.nodes:
        for x in tensors_in(example(node)):
            if (reason := why_not_on(x.device, backend)) is not None:
                what = f"a tensor on the device {x.device}: {reason}"
                raise WholeInTorch(node, what)
            first = first or x.device
            if x.device != first:
                what = f"a tensor on the device {x.device}, where others are on {first}"
                raise WholeInTorch(node, what)
    return str(first or "cpu")
