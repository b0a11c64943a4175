"""The memory of ranks that read their parts of a graph from files: a GCN trains on one that was cut
for 1, 2, .. ranks, and each says how much it took."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..frontend.tools.children import Message
from ..frontend.tools.report import table
from ..runtime.partition import edges, files
from .ranks import launched

CHILD = Path(__file__).with_name("part_memory_child.py")
BLOCK = 1 << 22
"""Edges, or numbers of features, that are drawn at once."""
TINY = (2_000, 20_000)
"""Nodes and edges of the graph that tells what a rank takes without one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--nodes", type=int, default=196_250)
    parser.add_argument("--edges", type=int, default=33_000_000)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=32, help="features between layers")
    parser.add_argument("--classes", type=int, default=107)
    parser.add_argument(
        "--across", type=float, default=0.001, help="the share of edges from any node to any"
    )
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where files are put")


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """All numbers of ranks on one graph."""
    names = ("nodes", "edges", "features", "hidden", "classes", "across")
    shape: Message = {k: getattr(args, k) for k in names}
    most = max(args.ranks)
    with tempfile.TemporaryDirectory(prefix="gnnc-bench-", dir=args.folder) as name:
        folder = Path(name)
        for part, (nodes, count) in {"tiny": TINY, "whole": (args.nodes, args.edges)}.items():
            (folder / part).mkdir()
            write_graph(folder / part, nodes, count, args.across, most)
            write_rows(folder / part, nodes, args.features, args.classes)
        runs = [_run(folder, ranks, most, shape) for ranks in args.ranks]
    yield {**shape, "runs": runs}


def _run(folder: Path, ranks: int, most: int, shape: Message) -> Message:
    """What each rank says; nodes are of the communities that the graph was drawn with."""
    received = 0
    for part in ("tiny", "whole"):
        graph = edges.in_file(folder / part / "edges.npy")
        owner = (np.arange(graph.nodes) % most * ranks // most).astype(np.int32)
        found = files.save(folder / part / "parts", ranks, owner, graph)
        received = max(shapes["ghosts"][0] for shapes in found.shapes)
    question = {"folder": str(folder), "hidden": shape["hidden"], "classes": shape["classes"]}
    answer = launched(str(CHILD), question, ranks, 1)
    return {"ranks": ranks, "received": received, **answer}


def write_graph(folder: Path, nodes: int, count: int, across: float, communities: int) -> None:
    """Edges from nodes that are drawn by a power law to any of the same community, but for a share
    that leads anywhere. Node v is of community v modulo their number."""
    random = np.random.default_rng(0)
    shape = (2, count)
    ends: Any = np.lib.format.open_memmap(folder / "edges.npy", "w+", np.int32, shape)
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        src = (nodes * random.random(size) ** 2).astype(np.int64)
        dst = random.integers(0, nodes, size)
        near = random.random(size) >= across
        dst[near] += (src[near] - dst[near]) % communities
        ends[:, first : first + size] = np.minimum(src, nodes - 1), dst % nodes
    ends[0, 0] = nodes - 1  # as many nodes as there should be
    ends.flush()


def write_rows(folder: Path, nodes: int, features: int, classes: int) -> None:
    """Features and classes at random."""
    random = np.random.default_rng(1)
    x: NDArray[Any] = np.lib.format.open_memmap(
        folder / "x.npy", "w+", np.float32, (nodes, features)
    )
    step = max(1, BLOCK // features)
    for first in range(0, nodes, step):
        x[first : first + step] = random.standard_normal(x[first : first + step].shape, np.float32)
    np.save(folder / "y.npy", random.integers(0, classes, nodes))


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a number of ranks: the peak of the rank that took most, without what it takes on a
    tiny graph, and that over its share of one rank's, with the rows that it receives."""
    rows = [["ranks", "peak", "for the graph", "of it in files", "rows received", "over its share"]]
    whole = next((_graph(run) for run in result["runs"] if run["ranks"] == 1), None)
    for run in result["runs"]:
        halo = 4 * result["features"] * run["received"]
        share = "" if whole is None else f"{_graph(run) / (whole / run['ranks'] + halo):.2f}"
        rows.append(
            [
                str(run["ranks"]),
                _megabytes(max(run["peak"])),
                _megabytes(_graph(run)),
                _megabytes(max(run["in_files"])),
                f"{run['received']:,}",
                share,
            ]
        )
    title = (
        f"{result['nodes']:,} nodes, {result['edges']:,} edges, of which {result['across']:.1%} "
        f"lead anywhere; {result['features']}, {result['hidden']}, {result['classes']} features"
    )
    return f"{title}\n\n{table(rows, markdown=markdown)}"


def _graph(run: Message) -> int:
    """The bytes that the rank which takes most takes for its part of the graph."""
    return max(a - b for a, b in zip(run["peak"], run["tiny"], strict=True))


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
