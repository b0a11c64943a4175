"""Large graphs that are drawn in seconds, with the degrees of published ones."""

from __future__ import annotations

import argparse

import numpy as np

from ..frontend.tools.datasets import Ints

ALPHA = 0.6
PIECE = 1 << 22
"""Edges drawn at a time, so that drawing needs little memory beside its result."""
SIZES = ("170000x1170000", "233000x11600000")
"""Nodes and edges: about those of ogbn-arxiv, and a tenth of Reddit's."""


def add_sizes(parser: argparse.ArgumentParser, *sizes: str) -> None:
    """`--sizes`, of every part that draws such graphs."""
    text = "nodes and edges of each graph, which is drawn with power-law degrees"
    usual = [size(s) for s in sizes]
    parser.add_argument("--sizes", nargs="+", type=size, default=usual, help=text, metavar="NxE")


def size(text: str) -> tuple[int, int]:
    """`<nodes>x<edges>` as two numbers.

    Raises:
        argparse.ArgumentTypeError: it is none, or one of them is below 1.
    """
    nodes, _, edges = text.partition("x")
    if not (nodes.isdecimal() and edges.isdecimal() and int(nodes) and int(edges)):
        raise argparse.ArgumentTypeError(f"{text!r} is not NODESxEDGES, as in {SIZES[0]}")
    return int(nodes), int(edges)


def name(nodes: int, edges: int) -> str:
    """As results call such a graph."""
    return f"power-law {nodes}x{edges}"


def large_power_law(nodes: int, edges: int, seed: int = 0) -> Ints:
    """An edge_index (2 x edges, int64) whose k-th most frequent end has a frequency like k^-0.6.

    As `frontend.datasets.power_law_edges`, by the inverse of the continuous distribution and in
    pieces: it takes seconds and no memory to speak of where that takes minutes and much.
    """
    random = np.random.default_rng(seed)
    orders = [random.permutation(nodes).astype(np.int32) for _ in range(2)]
    out = np.empty((2, edges), np.int64)
    for row, order in zip(out, orders, strict=True):
        for begin in range(0, edges, PIECE):
            part = row[begin : begin + PIECE]
            ranks = nodes * random.random(len(part)) ** (1 / (1 - ALPHA))
            part[:] = order[ranks.astype(np.int32)]
    return out
