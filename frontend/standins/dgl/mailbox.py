"""Users' reduce functions: nodes of equal degree are called for together.

Shapes then depend on degrees, so `traced_mailbox` calls once for all nodes while it is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .frames import Rows
from .reduce import counts
from .traced_mailbox import reduce_traced
from .udf import NodeBatch

if TYPE_CHECKING:
    from .messages import Passage


def reduce_by_user(
    passage: Passage,
    function: Callable[[NodeBatch], dict[str, Tensor]],
    messages: dict[str, Tensor],
) -> dict[str, Tensor]:
    """The results of a user's reduce function, one row a target."""
    if torch.compiler.is_dynamo_compiling():
        try:
            return reduce_traced(passage, function, messages)
        except NotImplementedError:
            # It is for the tracer, so that it gives the call up. Here it may have left the trace
            # in the midst of the function and gone on without.
            if torch.compiler.is_dynamo_compiling():
                raise
    return reduce_by_degree(passage, function, messages)


def reduce_by_degree(
    passage: Passage,
    function: Callable[[NodeBatch], dict[str, Tensor]],
    messages: dict[str, Tensor],
) -> dict[str, Tensor]:
    """Calls `function` once a degree above zero, in ascending order, with messages by edge id.

    Returns features with a row a target, zero where no edge leads; none if there is no edge.
    """
    degrees = counts(passage.dst, passage.num_dst)
    by_target = passage.dst.argsort(stable=True)
    starts = degrees.cumsum(0) - degrees
    ids = passage.nodes()
    nodes: list[Tensor] = []
    results: list[dict[str, Tensor]] = []
    for degree in degrees.unique().tolist():
        if degree == 0:
            continue
        these = (degrees == degree).nonzero().flatten()
        places = starts[these].unsqueeze(1) + torch.arange(degree, device=starts.device)
        edges = by_target[places.flatten()]
        mail = {
            key: value.index_select(0, edges).reshape((-1, degree, *value.shape[1:]))
            for key, value in messages.items()
        }
        batch = NodeBatch(ids[these], passage.etype[2], Rows(passage.targets, these), mail)
        nodes.append(these)
        results.append(function(batch))
    if not results:
        return {}
    rows = torch.cat(nodes)
    joined = {key: torch.cat([result[key] for result in results]) for key in results[0]}
    return {
        key: value.new_zeros((passage.num_dst, *value.shape[1:])).index_copy(0, rows, value)
        for key, value in joined.items()
    }
