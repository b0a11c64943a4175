"""The figure of `gnnc partition --picture`: the work of parts, and what they read of each other."""

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
    figure = Figure(2, 2)
    work, nodes, reads, methods = figure.panels
    measures = found.measures
    part = np.arange(len(measures.work))
    work.bar(part, measures.work / max(measures.work.mean(), 1))
    work.set_ylabel("work over its mean")
    owned = np.bincount(found.owner, minlength=len(part))
    nodes.bar(part, owned, label="nodes")
    nodes.bar(part, measures.halo, bottom=owned, label="rows received")
    nodes.set_ylabel("rows")
    nodes.legend(fontsize="small", loc="lower left")
    image = reads.imshow(measures.rows, cmap="Blues")
    reads.grid(False)
    reads.set_ylabel("part that reads")
    figure.figure.colorbar(image, ax=reads, label="rows")
    for axes, label in ((work, "part"), (nodes, "part"), (reads, "part that owns")):
        axes.set_xlabel(label)
        axes.xaxis.get_major_locator().set_params(integer=True)
    reads.yaxis.get_major_locator().set_params(integer=True)
    for candidate in found.candidates:
        if candidate.measures is not None:
            there = candidate.measures.imbalance, candidate.measures.volume
            methods.plot(*there, "o", label=candidate.method)
    methods.set_yscale("symlog")
    methods.set_xlabel("imbalance")
    methods.set_ylabel("rows that all parts receive")
    methods.legend(fontsize="small", loc="lower left")
    figure.figure.suptitle(
        f"{len(part)} parts by {found.method}: {len(found.owner):,} nodes, "
        f"{measures.volume:,} halo rows, imbalance {measures.imbalance:.3f}",
        fontsize="medium",
    )
    figure.save(path)
