"""Users' reduce functions while a call is traced: once for all nodes, whatever their degrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

# Importing these makes functions of torch operations.
from . import traced_arithmetic, traced_products, traced_reductions, traced_shapes  # noqa: F401
from .frames import Rows
from .traced_values import Inbox, Traced, unsupported
from .udf import NodeBatch

if TYPE_CHECKING:
    from .messages import Passage


def reduce_traced(
    passage: Passage, function: Callable[[NodeBatch], dict[str, Any]], messages: dict[str, Tensor]
) -> dict[str, Tensor]:
    """The results of `mailbox.reduce_by_degree`, for functions that work node by node.

    Raises `NotImplementedError` where a function does what is not known to.
    """
    if passage.counted and passage.src.shape[0] == 0:
        return {}
    inbox = Inbox(passage.dst, passage.num_dst)
    mail = {key: Traced(value, inbox, 2) for key, value in messages.items()}
    ids: Any = Traced(passage.nodes(), inbox, 1)
    data: Any = TracedData(passage.targets, inbox)
    results = function(NodeBatch(ids, passage.etype[2], data, mail))  # pyright: ignore
    return {key: _result(value) for key, value in results.items()}


def _result(value: Any) -> Tensor:
    if not isinstance(value, Traced):
        raise unsupported("a result that is not of the nodes")
    return value.result()


class TracedData(Rows):
    """Features of the targets."""

    def __init__(self, frame: Mapping[str, Tensor], inbox: Inbox):
        super().__init__(frame)
        self._inbox = inbox

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        return Traced(value, self._inbox, 1, unsafe=value.is_floating_point())
