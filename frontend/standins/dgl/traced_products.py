"""Products, in a reduce function that is traced."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .traced_reductions import of_messages
from .traced_values import TURNED, Traced, apply, operation, unsupported


@operation("matmul", "mm", "bmm", "__matmul__")
def matmul(function: Any, input: Any, other: Any) -> Traced:
    """A product of each row with one matrix or vector, or of rows that are matrices, or of the
    messages of each node with a matrix of the node."""
    if not isinstance(input, Traced):
        raise unsupported("a product from the left")
    if not isinstance(other, Traced):
        if other.dim() > 2:
            raise unsupported("a product with several matrices")
        input.feature(-1)
        return input.computed(input.values.matmul(other))
    if (input.lead, input.features, other.lead, other.features) == (2, 1, 1, 2):
        return _with_matrices(input, other)
    same = input.lead == other.lead and input.features == other.features
    if not same or input.features < 2:
        raise unsupported("a product of rows that are no matrices")
    return input.computed(input.values.matmul(other.values))


def _with_matrices(messages: Traced, of_nodes: Traced) -> Traced:
    """`(nodes, degree, k)` times `(nodes, k, f)`."""
    matrices = of_nodes.values.index_select(0, messages.inbox.index)
    return messages.computed(torch.einsum("ek,ekf->ef", messages.values, matrices))


@operation("__rmatmul__")
def rmatmul(function: Any, other: Any, input: Any) -> Traced:
    """A product in the other order."""
    return matmul(function, input, other)


@operation("transpose", "swapaxes", "swapdims", of=TURNED)
def transpose(function: Any, input: Traced, dim0: int, dim1: int) -> Traced:
    """Messages as they were."""
    if {dim0 % 3, dim1 % 3} != {1, 2}:
        raise unsupported("transpose of nodes or messages")
    return input.turned_back()


@operation("matmul", "bmm", "__matmul__", of=TURNED)
def turned_matmul(function: Any, input: Any, other: Any) -> Traced:
    """The sum of the outer products of messages, or a product of each node's rows with them."""
    if not isinstance(input, Traced) or not isinstance(other, Traced):
        raise unsupported("a product over messages with what is not of the nodes")
    if input.turned and not other.turned and (other.lead, other.features) == (2, 1):
        left, right = input.turned_back().values, other.values
        return of_messages(input.computed(torch.einsum("ea,eb->eab", left, right)), "sum")
    if other.turned and not input.turned and (input.lead, input.features) == (1, 2):
        rows = input.values.index_select(0, input.inbox.index)
        messages = other.turned_back()
        product = torch.einsum("eak,ek->ea", rows, messages.values)
        return messages.computed(product).turned_round()
    raise unsupported("a product over messages with what has other dimensions")


@operation("softmax", of=TURNED)
def softmax(
    function: Any, input: Traced, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Traced:
    """Softmax over the messages of a node, or over features."""
    if dim is None or dim % 3 == 0:
        raise unsupported("softmax of all nodes together")
    messages = input.turned_back()
    return torch.softmax(messages, 3 - dim % 3, dtype=dtype).turned_round()  # pyright: ignore


@operation("sum", "mean", "amax", "amin", of=TURNED)
def reduced(function: Any, input: Traced, dim: Any = None, keepdim: bool = False) -> Traced:
    """A reduction of messages or of features."""
    if type(dim) is not int or dim % 3 == 0 or keepdim:
        raise unsupported("a reduction of messages that are transposed but for one dimension")
    return apply(function.__name__, function, (input.turned_back(), 3 - dim % 3), {})


@operation("mul", "div", "true_divide", "__mul__", "__truediv__", "__rmul__", of=TURNED)
def scaled(function: Any, input: Any, other: Any) -> Traced:
    """Products with numbers."""
    if not isinstance(input, Traced) or not isinstance(other, int | float):
        raise unsupported("a function of elements over messages that are transposed")
    messages = input.turned_back()
    return messages.computed(function(messages.values, other)).turned_round()


@operation("einsum")
def einsum(function: Any, equation: Any, *operands: Any) -> Traced:
    """A product of rows by einsum, and its sum over messages where these are not in the result."""
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        raise unsupported("einsum without all letters")
    terms, result = equation.replace(" ", "").split("->")
    parts = terms.split(",")
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    traced = [(p, o) for p, o in zip(parts, operands, strict=True) if isinstance(o, Traced)]
    leads = sorted({p[: o.lead] for p, o in traced}, key=len)
    first = leads[-1]
    if not all(first.startswith(lead) for lead in leads) or 0 in [o.lead for _, o in traced]:
        raise unsupported("einsum of nodes or messages in several places")
    lead, keeps = len(first), result.startswith(first)
    others = [p[o.lead :] for p, o in traced]
    others += [p for p, o in zip(parts, operands, strict=True) if not isinstance(o, Traced)]
    kept = result[lead:] if keeps else result[1:]
    if result[:1] != first[0] or set(first) & set("".join([*others, kept])):
        raise unsupported("einsum of nodes or messages as features")
    row, rows = first[-1], []
    for part, o in zip(parts, operands, strict=True):
        if isinstance(o, Traced):
            below = o.lead < lead
            rows.append(o.values.index_select(0, o.inbox.index) if below else o.values)
        else:
            rows.append(o)
    letters = [
        row + p[o.lead :] if isinstance(o, Traced) else p
        for p, o in zip(parts, operands, strict=True)
    ]
    product: Tensor = torch.einsum(f"{','.join(letters)}->{row}{kept}", *rows)
    found = Traced(product, traced[0][1].inbox, lead)
    return found if keeps else of_messages(found, "sum")
