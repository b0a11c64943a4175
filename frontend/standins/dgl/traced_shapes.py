"""Other shapes of values in a traced reduce function: nodes and messages stay the first."""

from __future__ import annotations

from typing import Any

from torch import Tensor

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
    """Two feature dimensions swapped."""
    return input.moved(input.raw.transpose(input.feature(dim0), input.feature(dim1)))


@operation("permute")
def permute(function: Any, input: Traced, *dims: Any) -> Traced:
    """The feature dimensions in another order."""
    order = _flat(dims)
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
    """Some of the features, where the index has all nodes and messages."""
    entries = index if isinstance(index, tuple) else (index,)
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
