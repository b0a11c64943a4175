"""What the loss function of a `train_step` returns: the loss, and what is beside it.

Of the results of a graph only the loss is differentiated. Dynamo's graphs also return what a model
keeps of a call, in an order of its own, so the loss passes through an op of ours by which it is
found.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr

from ...dialects.attributes import DETACHED
from ...dialects.signature import result_attributes
from .importer import Imported
from .importer.binding import Result
from .optimizers import NotOneStep

_LIBRARY = torch.library.Library("gnnc", "FRAGMENT")
_LIBRARY.define("loss(Tensor x) -> Tensor")
_LIBRARY.impl("loss", lambda x: x.clone(), "CompositeImplicitAutograd")

_PLAIN = (Tensor, int, float, str, type(None))
"""What may stand beside the loss."""


def marked(out: Any) -> Any:
    """What the function returned with the loss marked; the name of a type where this cannot be.
    Dynamo traces it."""
    wrong = _stranger(out)
    if wrong is not None:
        return wrong
    if isinstance(out, Tensor):
        return torch.ops.gnnc.loss(out)
    return _like(out, [torch.ops.gnnc.loss(out[0]), *out[1:]])


def the_loss(out: Any) -> Tensor:
    """The loss of what the function returned, or of what `marked` made of that.

    Raises:
        TypeError: there is none, or something else than tensors and numbers is beside it.
    """
    wrong = out if isinstance(out, str) else _stranger(out)
    if wrong is None:
        loss = out if isinstance(out, Tensor) else out[0]
        if loss.numel() == 1:
            return loss
        wrong = f"{loss.numel()} numbers"
    raise TypeError(
        "the loss must be a tensor of one number, alone or first in a tuple with tensors (and "
        f"tuples, lists and dicts of them), got {wrong}"
    )


def with_loss(out: Any, loss: Tensor) -> Any:
    """What the function returned with another loss, of one number."""
    if isinstance(out, Tensor):
        return loss.view_as(out)
    return _like(out, [loss.view_as(out[0]), *out[1:]])


def detached(out: Any) -> Any:
    """The same structure without gradients."""
    if isinstance(out, Tensor):
        return out.detach()
    if isinstance(out, dict):
        return {k: detached(x) for k, x in out.items()}
    if isinstance(out, tuple | list):
        return _like(out, [detached(x) for x in out])
    return out


def _like(out: Any, items: list[Any]) -> Any:
    """A list or a tuple, a named one too, with other items."""
    return type(out)(*items) if hasattr(out, "_fields") else type(out)(items)


def _stranger(out: Any) -> str | None:
    """The name of a type that cannot be returned, or None."""
    if isinstance(out, Tensor):
        return None
    if not isinstance(out, tuple):
        return type(out).__name__
    if not out or not isinstance(out[0], Tensor):
        return f"a tuple that begins with {type(out[0]).__name__}" if out else "an empty tuple"
    for x in out[1:]:
        wrong = _strange_leaf(x)
        if wrong is not None:
            return f"{wrong} beside it"
    return None


def _strange_leaf(x: Any) -> str | None:
    if isinstance(x, _PLAIN):
        return None
    if type(x) is not dict and type(x) is not list and not isinstance(x, tuple):
        return type(x).__name__
    for y in x.values() if isinstance(x, dict) else x:
        wrong = _strange_leaf(y)
        if wrong is not None:
            return wrong
    return None


def place_of_loss(graph: fx.GraphModule) -> int:
    """Which output of the graph the loss is; it is no longer marked then.

    Raises:
        NotOneStep: it is none.
    """
    (out,) = graph.graph.find_nodes(op="output")
    marks = (torch.ops.gnnc.loss, torch.ops.gnnc.loss.default)
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target in marks:
            node.target = torch.clone
            if node in out.args[0]:
                return out.args[0].index(node)
    raise NotOneStep("the loss is no output of the graph")


def without_other_gradients(imported: Imported, place: int) -> None:
    """Notes in the program that of its results only the loss, an output, is differentiated.

    Raises:
        NotOneStep: it is no result of the program.
    """
    outputs = imported.outputs  # of a part of a graph it may be one
    loss = outputs[place] if isinstance(outputs, tuple | list) else outputs
    if not isinstance(loss, Result):
        raise NotOneStep("the loss is made of no parameter")
    func, count = imported.function, len(imported.results)
    attributes = [dict(d) for d in result_attributes(func)]
    for i, attrs in enumerate(attributes[:count]):
        if i != loss.number:
            attrs[DETACHED] = UnitAttr()
    func.res_attrs = ArrayAttr(DictionaryAttr(d) for d in attributes)
