"""How fast this machine multiplies features with weights, dense and by entries.

A target's record has figures of one machine. `calibrate` measures those that the choice between
dense and sparse features needs, and `speeds` gives them from then on, for the same processor,
number of threads and compiler's target.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ....passes.analysis.seconds import line_bytes
from ....passes.targets import Target, target_named
from ....passes.targets.record import Speeds
from ....runtime import cache
from ....runtime.cpu import toolchain
from ....runtime.cpu.threads import num_threads
from ...targets import default_target

_ROWS, _COLUMNS, _SHARE = 16_384, 1_024, 0.2
_ROUNDS = 15
_MEASURED = ("gemm_flops", "stream_bytes", "near_bytes", "entry_seconds")


def target() -> Target:
    """The default target with the speeds of this machine, where they were measured."""
    record = target_named(default_target())
    stored = cache.get_bytes(_key(record))
    if stored is None:
        return record
    return replace(record, speeds=replace(record.speeds, **json.loads(stored)))


def calibrate() -> Speeds:
    """Measures products of features and their gradients (seconds), and keeps the speeds.

    Raises:
        NoCompiler: there is no C compiler.
    """
    numbers = _ROWS * _COLUMNS
    x = torch.rand(_ROWS, _COLUMNS)
    x = x * (torch.rand_like(x) < _SHARE)
    entries = int(torch.count_nonzero(x))
    # a forward and a backward product each: of what the costs are those of one
    dense = {f: _seconds(x, f) / 2 for f in (2, 128)}
    sparse = {f: _seconds(x.to_sparse(), f) / 2 / entries for f in (16, 128)}
    record = target_named(default_target())
    found = replace(
        record.speeds,
        gemm_flops=2 * numbers * (128 - 2) / max(dense[128] - dense[2], 1e-3 * dense[128]),
        stream_bytes=4 * numbers / dense[2],
        near_bytes=line_bytes(4 * 128, record.caches.line) / sparse[128],
        entry_seconds=sparse[16],
    )
    assert all(math.isfinite(v) for v in asdict(found).values())
    kept = {name: getattr(found, name) for name in _MEASURED}
    cache.put_bytes(_key(record), json.dumps(kept).encode())
    return found


def _seconds(x: Tensor, width: int) -> float:
    """The median time of a product with features and the gradient of the weight."""
    from ..compile import compile

    weight = torch.rand(x.shape[1], width, requires_grad=True)
    product: Callable[..., Any] = compile(lambda x, w: x @ w, sparse_features=False)
    cotangent = torch.rand(x.shape[0], width)
    times: list[float] = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        torch.autograd.grad(product(x, weight), weight, cotangent)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def _key(record: Target) -> str:
    """What the speeds are of."""
    found = toolchain.compiler()
    machine = (_processor(), num_threads(), record.name, found.target)
    return "\0".join(["speeds of features by entries in their order", *map(str, machine)])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((x.partition(":")[2] for x in lines if x.startswith("model name")), "")
