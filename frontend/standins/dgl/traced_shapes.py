"""Other shapes of values in a traced reduce function: nodes and messages stay the first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .reduce import reduce_messages
from .traced_values import Extent, Traced, operation, unsupported


@operation("view", "reshape")
def view(function: Any, input: Traced, *sizes: Any, shape: Any = None) -> Traced:
    """The features of each row in another shape."""
    sizes = _flat(sizes if shape is None else (shape,))
    first, rest = sizes[: input.lead], list(sizes[input.lead :])
    if len(first) < input.lead or not all(_kept(size, k) for k, size in enumerate(first)):
        raise unsupported("a view of several nodes or messages together")
    total, known = _product(input.raw.shape[1:]), _product(s for s in rest if s != -1)
    if -1 in rest:
        rest[rest.index(-1)] = total // known
    elif known != total:
        raise unsupported("a view of several nodes or messages together")
    return input.moved(input.raw.reshape((input.raw.shape[0], *rest)))


def _flat(sizes: Any) -> tuple[Any, ...]:
    """Sizes that are given one by one, or as one sequence."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def _kept(size: Any, place: int) -> bool:
    """Whether a size is what it was in the first or second place."""
    return size.lead == place if isinstance(size, Extent) else size == -1


def _product(sizes: Any) -> int:
    result = 1
    for size in sizes:
        result = result * size
    return result


@operation("unsqueeze")
def unsqueeze(function: Any, input: Traced, dim: int) -> Traced:
    """A dimension of one after those of nodes and messages."""
    return input.moved(input.raw.unsqueeze(input.feature(dim, 1)))


@operation("squeeze")
def squeeze(function: Any, input: Traced, dim: int | None = None) -> Traced:
    """One feature dimension less; without `dim`, the degree may be one, so that is refused."""
    if dim is None:
        raise unsupported("squeeze without dim")
    return input.moved(input.raw.squeeze(input.feature(dim)))


@operation("transpose", "swapaxes", "swapdims")
def transpose(function: Any, input: Traced, dim0: int, dim1: int) -> Traced:
    """Two feature dimensions swapped, or that of messages and the one of features."""
    if input.lead == 2 and input.features == 1 and {dim0 % 3, dim1 % 3} == {1, 2}:
        return input.turned_round()
    return input.moved(input.raw.transpose(input.feature(dim0), input.feature(dim1)))


@operation("permute")
def permute(function: Any, input: Traced, *dims: Any) -> Traced:
    """The feature dimensions in another order."""
    order = _flat(dims)
    if input.lead == 2 and [d % 3 for d in order] == [0, 2, 1]:
        return input.turned_round()
    if tuple(order[: input.lead]) != tuple(range(input.lead)):
        raise unsupported("permute of nodes or messages")
    return input.moved(input.raw.permute((0, *[input.feature(d) for d in order[input.lead :]])))


@operation("flatten")
def flatten(function: Any, input: Traced, start_dim: int = 0, end_dim: int = -1) -> Traced:
    """Several feature dimensions as one."""
    return input.moved(input.raw.flatten(input.feature(start_dim), input.feature(end_dim)))


@operation("cat", "concat", "concatenate")
def cat(function: Any, tensors: Any, dim: int = 0) -> Traced:
    """Features side by side."""
    first = _alike(tensors)
    return first.computed(function([t.values for t in tensors], first.feature(dim)))


@operation("stack")
def stack(function: Any, tensors: Any, dim: int = 0) -> Traced:
    """Features side by side, in a dimension of their own."""
    first = _alike(tensors)
    return first.computed(function([t.values for t in tensors], first.feature(dim, 1)))


def _alike(tensors: Any) -> Traced:
    """The first of some tensors that all have one row a node, or all one a message."""
    first = tensors[0]
    if not all(isinstance(t, Traced) for t in tensors):
        raise unsupported("cat or stack with a tensor that is not of the nodes")
    if not all(t.lead == first.lead and t.dim() == first.dim() for t in tensors):
        raise unsupported("cat or stack of values of nodes and messages")
    return first


@operation("chunk", "split")
def pieces(function: Any, input: Traced, size: Any, dim: int = 0) -> Any:
    """Some of the features each."""
    return tuple(input.moved(part) for part in function(input.raw, size, input.feature(dim)))


@operation("unbind")
def unbind(function: Any, input: Traced, dim: int = 0) -> Any:
    """One feature each."""
    return tuple(input.moved(part) for part in function(input.raw, input.feature(dim)))


@operation("__getitem__")
def item(function: Any, input: Traced, index: Any) -> Traced:
    """Some of the features, where the index has all nodes, and all messages or an outermost."""
    entries = index if isinstance(index, tuple) else (index,)
    if input.lead == 2 and len(entries) > 1 and _is_all(entries[0]) and _is_end(entries[1]):
        rest = (slice(None), *entries[2:])
        return item(function, _outermost(input, entries[1]), rest)
    skipped = 0
    while skipped < min(input.lead, len(entries)) and _is_all(entries[skipped]):
        skipped += 1
    rest = entries[skipped:]
    if skipped < input.lead and rest and rest[0] is not Ellipsis:
        raise unsupported("an index of nodes or messages")
    used = [entry for entry in rest if entry is not None and entry is not Ellipsis]
    if len(used) > input.features or not all(isinstance(e, (int, slice)) for e in used):
        raise unsupported("an index of nodes or messages")
    return input.moved(input.raw[(slice(None), *rest)])


def _is_all(entry: Any) -> bool:
    whole = isinstance(entry, slice)
    return whole and entry.start is None and entry.stop is None and entry.step is None


def _is_end(entry: Any) -> bool:
    return type(entry) is int and entry in (0, -1)


def _outermost(input: Traced, place: int) -> Traced:
    """The first message of each node, or the last: messages are in the order of edges."""
    inbox, values = input.inbox, input.values
    if values.dtype == torch.bool:
        raise unsupported("a message of truth values")
    number = torch.arange(inbox.index.shape[0], device=values.device)
    found = reduce_messages(number, inbox.index, inbox.rows, "max" if place else "min")
    other = number != found.index_select(0, inbox.index)
    alone = values.masked_fill(other.reshape((-1,) + (1,) * input.features), 0)
    rows = reduce_messages(alone, inbox.index, inbox.rows, "sum")
    result = Traced(rows, inbox, 1, unsafe=True, zero=True)
    result.viewed = input.viewed = True
    return result


@operation("select")
def select(function: Any, input: Traced, dim: int, index: int) -> Traced:
    """One of the features, or the first or last message of each node."""
    place = dim + input.dim() if dim < 0 else dim
    return item(function, input, (*[slice(None)] * place, index))


@operation("new_zeros", "new_ones")
def filled(function: Any, input: Traced, *sizes: Any, **named: Any) -> Traced:
    """One number in all elements, of nodes or of messages."""
    sizes = _flat(sizes)
    lead = 0
    while lead < min(2, len(sizes)) and isinstance(sizes[lead], Extent):
        if not _kept(sizes[lead], lead):
            raise unsupported("sizes of nodes and messages in another order")
        lead += 1
    rows = input.inbox.index.shape[0] if lead == 2 else input.inbox.rows
    if lead == 0:
        raise unsupported("a tensor of a number that is not that of nodes")
    return Traced(function(input.raw, (rows, *sizes[lead:]), **named), input.inbox, lead)


@operation("expand")
def expand(function: Any, input: Traced, *sizes: Any) -> Traced:
    """Features, or values of nodes for each message, several times."""
    sizes = _flat(sizes)
    if len(sizes) != input.dim():
        raise unsupported("expand to more dimensions")
    input = _spread_to(input, sizes, 1)
    if not all(_kept(size, k) for k, size in enumerate(sizes[: input.lead])):
        raise unsupported("expand of nodes or messages")
    return input.moved(input.raw.expand((-1, *sizes[input.lead :])))


@operation("expand_as")
def expand_as(function: Any, input: Traced, other: Traced | Tensor) -> Traced:
    """`expand` to the shape of another tensor."""
    return expand(function, input, *other.shape)


@operation("repeat")
def repeat(function: Any, input: Traced, *repeats: Any) -> Traced:
    """Features, or values of nodes for each message, several times."""
    repeats = _flat(repeats)
    if len(repeats) != input.dim():
        raise unsupported("repeat to more dimensions")
    spread = _spread_to(input, repeats, 1)
    first = repeats[: input.lead]
    if not all(not isinstance(n, Extent) and n == 1 for n in first):
        raise unsupported("repeat of nodes or messages")
    return spread.moved(spread.raw.repeat((1, *repeats[spread.lead :])))


def _spread_to(input: Traced, sizes: Any, place: int) -> Traced:
    """Values of nodes as ones of messages, where this size is the degree."""
    size = sizes[place] if input.lead == place < len(sizes) else None
    return input.spread() if isinstance(size, Extent) and size.lead == 1 else input
