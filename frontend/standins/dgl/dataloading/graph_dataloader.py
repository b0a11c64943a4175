"""Batches of many small graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import default_collate

from ..batch import batch
from ..graph import DGLGraph


class GraphCollator:
    """Puts examples together: graphs by `dgl.batch`, all else as torch's loader does."""

    def collate(self, items: Sequence[Any]) -> Any:
        """A batch of examples, which have one form: graphs, tensors, numbers, or containers of
        these. Raises `TypeError` for others, `RuntimeError` for lists of different length."""
        first = items[0]
        if isinstance(first, DGLGraph):
            return batch(list(items))
        if isinstance(first, Mapping):
            return {key: self.collate([item[key] for item in items]) for key in first}
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            return type(first)(*map(self.collate, zip(*items, strict=True)))
        if isinstance(first, Sequence) and not isinstance(first, str | bytes):
            if any(len(item) != len(first) for item in items):
                raise RuntimeError("each element in list of batch should be of equal size")
            return [self.collate(part) for part in zip(*items, strict=True)]
        return default_collate(list(items))


class GraphDataLoader(TorchLoader[Any]):
    """Batches of examples with graphs, in torch's loader.

    Args:
        dataset: graphs, or tuples of a graph and what belongs to it.
        collate_fn: puts examples together; by default that of `GraphCollator`.
        kwargs: those of `torch.utils.data.DataLoader`; of `use_ddp` see there
            `torch.utils.data.DistributedSampler`.

    Raises:
        NotImplementedError: `use_ddp`.
    """

    def __init__(
        self,
        dataset: Any,
        collate_fn: Any = None,
        use_ddp: bool = False,
        ddp_seed: int = 0,
        **kwargs: Any,
    ) -> None:
        if use_ddp:
            raise NotImplementedError(
                "use_ddp=True is not supported: give each process its own part, "
                "sampler=torch.utils.data.DistributedSampler(dataset)"
            )
        if collate_fn is None and kwargs.get("batch_size", 1) is not None:
            collate_fn = GraphCollator().collate
        super().__init__(dataset, collate_fn=collate_fn, **kwargs)
