"""What the random numbers of a sampler go by.

A `DataLoader` says so for each batch (`drawing`), so that they depend on its seed, the epoch and
the step alone. A sampler that is called without one draws a seed from the generator of `dgl.seed`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gnnc.frontend.torch.loader.seeds import drawn_seed
from gnnc.runtime.sampling.sampler import Key

from ..random import generator

USES = 2**16
"""How many streams of random numbers the parts of one batch may use."""


class _Batch(threading.local):
    """The batch that a thread is at: its key, the threads a sampler may use, streams in use."""

    key: Key | None = None
    threads: int | None = None
    used = 0


_batch = _Batch()


@contextmanager
def drawing(key: Key, threads: int | None) -> Iterator[None]:
    """Within it the samplers that this thread calls make the batch `key`, in so many threads."""
    before = _batch.key, _batch.threads, _batch.used
    _batch.key, _batch.threads, _batch.used = key, threads, 0
    try:
        yield
    finally:
        _batch.key, _batch.threads, _batch.used = before


def next_key() -> Key:
    """The key of another stream of random numbers of the batch."""
    if _batch.key is None:
        return Key(drawn_seed(generator))
    step = _batch.key.step * USES + _batch.used
    _batch.used += 1
    return Key(_batch.key.seed, _batch.key.epoch, step)


def threads() -> int | None:
    """How many threads a sampler may use; None: those of all compiled code."""
    return _batch.threads
