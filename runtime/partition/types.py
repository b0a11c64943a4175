"""Graphs with types of nodes and edges, as one graph: nodes of all types are numbered one type
after the other, and so are edges."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .edges import BLOCK, MOST_NODES, Edges, Int64, in_file

Key = tuple[str, str, str]
"""A type of edges: that of their sources, a name, that of their destinations."""
SEPARATOR = "__"
"""What PyG puts between the three names of a type of edges where one name is needed."""


@dataclass(frozen=True)
class Types:
    """The types of the nodes and edges of a graph.

    Attributes:
        nodes: the name of each type of nodes and how many there are, in the order of numbers.
        edges: each type of edges and how many there are, in the order of numbers.

    Raises:
        ValueError: edges of a type have ends of a type that no nodes are of.
    """

    nodes: tuple[tuple[str, int], ...]
    edges: tuple[tuple[Key, int], ...]

    def __post_init__(self) -> None:
        names = {name for name, _ in self.nodes}
        for key, _ in self.edges:
            for end in (key[0], key[2]):
                if end not in names:
                    raise ValueError(f"edges of type {key}: there are no nodes of type {end!r}")

    @cached_property
    def first(self) -> Int64:
        """The number of the first node of each type, and of all nodes."""
        return np.cumsum([0, *(n for _, n in self.nodes)], dtype=np.int64)

    @cached_property
    def ends(self) -> tuple[tuple[int, int], ...]:
        """The places in `nodes` of the types that edges of each type lead from and to."""
        place = {name: k for k, (name, _) in enumerate(self.nodes)}
        return tuple((place[key[0]], place[key[2]]) for key, _ in self.edges)

    @cached_property
    def stops(self) -> tuple[int, ...]:
        """Where the numbers of edges of each type end."""
        return tuple(accumulate(n for _, n in self.edges))


Run = tuple[int, int, Int64, Int64]
"""Edges of one type: its place, the number of the first of them in it, sources, destinations."""


def runs(edges: Edges, types: Types | None) -> Iterator[Run]:
    """The blocks of edges, where a block has edges of several types cut between these; without
    types all are of one.

    Raises:
        ValueError: there are more or fewer edges than the types say.
    """
    stops = (sys.maxsize,) if types is None else types.stops
    k = at = start = 0
    for src, dst in edges:
        while len(src):
            while k < len(stops) and at == stops[k]:
                k, start = k + 1, at
            if k == len(stops):
                raise ValueError(f"edges: there are more than the {at} of all types")
            size = min(len(src), stops[k] - at)
            yield k, at - start, src[:size], dst[:size]
            src, dst, at = src[size:], dst[size:], at + size
    if types is not None and at != (stops[-1] if stops else 0):
        raise ValueError(f"edges: {at}, and the types have {stops[-1]}")


def in_files(
    files: Mapping[Key, Path], nodes: Mapping[str, int] | None = None, block: int = BLOCK
) -> tuple[Edges, Types]:
    """The edges of `.npy` files of 2 x edges integers, numbers among the nodes of the types that
    edges of a type lead from and to. Files are read in blocks and never held as a whole.

    Args:
        files: of each type of edges.
        nodes: how many nodes there are of a type; by default as many as the ends tell.
        block: edges that are read at once.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is none of such integers, an end is no node, or `nodes` names a type that
            no edges lead from or to.
        TypeError: a file does not hold integers.
    """
    given = dict(nodes or {})
    counts = {end: given.get(end, 0) for key in files for end in (key[0], key[2])}
    if unknown := given.keys() - counts.keys():
        raise ValueError(
            f"nodes: no edges have ends of type {min(unknown)!r}, only of {', '.join(counts)}"
        )
    each = {key: in_file(path, MOST_NODES, block) for key, path in files.items()}
    sizes = dict[Key, int]()
    for key, edges in each.items():
        size, most = 0, [-1, -1]
        for ends in edges:
            size += len(ends[0])
            most = [max(m, int(e.max(initial=-1))) for m, e in zip(most, ends, strict=True)]
        for end, m in zip((key[0], key[2]), most, strict=True):
            if end in given and m >= given[end]:
                raise ValueError(
                    f"{files[key]}: an edge has the end {m}, of {given[end]} nodes of type {end!r}"
                )
            counts[end] = max(counts[end], m + 1)
        sizes[key] = size
    types = Types(tuple(counts.items()), tuple(sizes.items()))
    first = types.first

    def blocks() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        for edges, (source, target) in zip(each.values(), types.ends, strict=True):
            for src, dst in edges:
                yield src + first[source], dst + first[target]

    return Edges(int(first[-1]), blocks), types


def files_of_types(folder: Path) -> Mapping[Key, Path]:
    """The files `SOURCE__NAME__TARGET.npy` of a folder, of edges from nodes of type `SOURCE` to
    those of type `TARGET`; empty where there are none.

    Raises:
        ValueError: a file has such a name with more or fewer parts, or the folder has edges without
            types as well.
    """
    found = dict[Key, Path]()
    for path in sorted(folder.glob(f"*{SEPARATOR}*.npy")):
        parts = path.stem.split(SEPARATOR)
        if len(parts) != 3 or not all(parts):
            raise ValueError(
                f"{path}: edges with types are in files SOURCE{SEPARATOR}NAME{SEPARATOR}TARGET.npy"
            )
        found[parts[0], parts[1], parts[2]] = path
    if found and (folder / "edge_index.npy").exists():
        raise ValueError(f"{folder} has edge_index.npy and edges with types: which is the graph?")
    return found


def check_names(types: Types) -> None:
    """Names by which files of types are told apart.

    Raises:
        ValueError: there are two types of nodes or of edges of one name.
    """
    nodes = Counter(name for name, _ in types.nodes)
    edges = Counter(SEPARATOR.join(key) for key, _ in types.edges)
    for name, n in (*nodes.items(), *edges.items()):
        if n > 1:
            raise ValueError(f"types: {n} have the name {name!r}")
