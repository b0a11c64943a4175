"""The figure of `gnnc partition --picture`: what parts have to do, and what they read of each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...runtime.partition.assign import Partition
from .figures import Figure


def draw(found: Partition, path: Path) -> None:
    """Draws work and halo rows of the parts that were taken, who reads of whom, and all methods.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    figure = Figure(1, 3)
    bars, reads, methods = figure.panels
    measures = found.measures
    part = np.arange(len(measures.work))
    bars.bar(part - 0.2, measures.work, 0.4, label="work (edges, and the cost of rows)")
    bars.bar(part + 0.2, measures.halo, 0.4, label="halo rows")
    bars.axhline(measures.work.mean(), color="black", linewidth=0.8, label="mean work")
    bars.set_xlabel("part")
    bars.legend(fontsize="small")
    image = reads.imshow(measures.rows, cmap="Blues")
    reads.grid(False)
    reads.set_xlabel("owner")
    reads.set_ylabel("reader")
    figure.figure.colorbar(image, ax=reads, label="rows")
    for candidate in found.candidates:
        if candidate.measures is not None:
            there = candidate.measures.imbalance, candidate.measures.volume
            methods.plot(*there, "o", label=candidate.method)
    methods.set_xlabel("imbalance")
    methods.set_ylabel("halo rows of all parts")
    methods.legend(fontsize="small")
    figure.figure.suptitle(
        f"{len(part)} parts by {found.method}: {len(found.owner):,} nodes, "
        f"{measures.volume:,} halo rows, imbalance {measures.imbalance:.3f}",
        fontsize="medium",
    )
    figure.save(path)
