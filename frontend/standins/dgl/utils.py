"""Helpers that layers written for DGL import from `dgl.utils`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .base import DGLError

if TYPE_CHECKING:
    from .graph import DGLGraph


def expand_as_pair(input_: Any, g: DGLGraph | None = None) -> tuple[Any, Any]:
    """Features of sources and of targets, of a pair, or of what is both.

    In a block the targets are the first sources. Features may be dicts by node type.
    """
    if isinstance(input_, tuple):
        return input_
    if g is None or not g.is_block:
        return input_, input_
    if isinstance(input_, Mapping):
        return input_, {t: value[: g.num_dst_nodes(t)] for t, value in input_.items()}
    return input_, input_[: g.num_dst_nodes()]


def check_eq_shape(input_: Any) -> None:
    """Raises `DGLError` if rows of sources and targets differ in shape."""
    sources, targets = expand_as_pair(input_)
    if sources.shape[1:] != targets.shape[1:]:
        raise DGLError(
            f"The feature shape of source nodes: {tuple(sources.shape[1:])} should be equal to "
            f"the feature shape of destination nodes: {tuple(targets.shape[1:])}."
        )


def apply_each(data: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function of each value of a dict or list, or of what is neither."""
    if isinstance(data, Mapping):
        return {key: fn(value, *args, **kwargs) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [fn(value, *args, **kwargs) for value in data]
    return fn(data, *args, **kwargs)
