"""`gnnc.loader.morph_operators`: a loader and a step, as operators of `gnnc.morph`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from ...morph.cache import DegreeCache
from ...morph.link import copied
from ...morph.registry import (
    ACCELERATOR,
    ACCELERATOR_AND_LINK,
    CPU,
    LINK,
    Operator,
    Phase,
    Registry,
)
from .loader import Loader


def morph_operators(
    loader: Loader,
    step: Callable[[Any], object],
    link: Operator,
    *,
    epoch: int = 0,
    threads: int | None = None,
    cache: DegreeCache | None = None,
) -> Registry:
    """The operators that train an epoch of `loader`, on a machine whose accelerator is its CPU.

    Batch k is the loader's batch k of this epoch, whoever prepares it: losses are those of a loop
    over the loader, in its order.

    Args:
        step: is given a batch, trains with it and returns what `Run.results` shall have.
        link: moves a batch, as :class:`gnnc.morph.RateLimitedLink` does. The accelerator's batches
            go over it too, for an accelerator that samples reads graph and features over the link.
        epoch: whose batches, as `Loader.set_epoch` counts.
        threads: those that sample one batch of the accelerator's, the CPU's having one for each
            batch; by default those of all compiled code.
        cache: holds rows of `x` that the accelerator need not read over the link. What it misses
            goes over its own `over_link`, so give it the same link.

    Raises:
        TypeError: `cache` is given and the loader's data is no `Data` with features `x`.
    """
    if cache is None:
        there = _over_link(loader.batches(epoch, threads=threads), link)
    else:
        bare = _without_x(loader).batches(epoch, threads=threads)
        there = _cached(bare, link, cache, loader.transform)
    registry = Registry()
    registry.register(Phase.PREPARE, CPU, loader.batches(epoch, threads=1))
    registry.register(Phase.MOVE, LINK, link)
    registry.register(Phase.PREPARE, ACCELERATOR_AND_LINK, there)
    registry.register(Phase.TRAIN, ACCELERATOR, step)
    return registry


def _over_link(batches: Operator, link: Operator) -> Operator:
    def prepare(index: object) -> object:
        return link(batches(index))

    return prepare


def _without_x(loader: Loader) -> Loader:
    """The same batches, without features and what the user makes of them."""
    data = getattr(loader, "data", None)
    if not isinstance(data, Data) or "x" not in data or "n_id" in data:
        raise TypeError("cache: the loader's data has to be a Data with x and without an n_id")
    bare, bare_data = copy.copy(loader), copy.copy(data)
    bare_data.num_nodes = data.num_nodes
    del bare_data.x
    vars(bare).update(data=bare_data, transform=None)
    return bare


def _cached(
    batches: Operator,
    link: Operator,
    cache: DegreeCache,
    transform: Callable[[Any], Any] | None,
) -> Operator:
    def prepare(index: object) -> object:
        batch: Any = link(batches(index))
        batch.x = torch.from_numpy(cache.rows(batch.n_id.numpy()))
        return batch if transform is None else transform(batch)

    return prepare


@copied.register
def _(value: Tensor) -> tuple[object, int]:
    return value.clone(), value.nbytes


@copied.register
def _(value: BaseData) -> tuple[object, int]:
    size = 0

    def copy_of(tensor: Tensor) -> Tensor:
        nonlocal size
        size += tensor.nbytes
        return tensor.clone()

    return copy.copy(value).apply(copy_of), size
