"""Published graphs: fewer rows cross than by METIS as it comes, and no part has too much to do.

The data lies where GNNC_DATA says, in the folders that PyG reads; only its raw files are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from gnnc.runtime.partition import metis
from gnnc.runtime.partition.assign import LIMIT, METHODS, Task, partition
from gnnc.runtime.partition.edges import Edges, in_memory

DATA = os.environ.get("GNNC_DATA")
pytestmark = pytest.mark.skipif(
    DATA is None, reason="GNNC_DATA does not name a folder with published data"
)


def matrix(path: Path) -> Edges:
    """An undirected graph that is stored as a CSR matrix, without its loops, as PyG has it."""
    with np.load(path) as file:
        entries = file["adj_data"], file["adj_indices"], file["adj_indptr"]
        found: Any = sparse.csr_array(entries, shape=tuple(file["adj_shape"]))
    found = found.maximum(found.T).tocoo()
    kept = found.row != found.col
    return in_memory(found.row[kept], found.col[kept], found.shape[0])


def triples(path: Path) -> Edges:
    """A graph of facts, each an edge from its subject to its object."""
    lines = (path / "entities.dict").read_text().splitlines()
    number = {name: int(n) for n, name in (line.split() for line in lines)}
    facts = [line.split() for line in (path / "train.txt").read_text().splitlines()]
    ends = np.array([(number[s], number[o]) for s, _, o in facts])
    return in_memory(ends[:, 0], ends[:, 1], len(number))


GRAPHS: dict[str, tuple[Callable[[Path], Edges], str]] = {
    "Cora_ML": (matrix, "citation_full/cora_ml/raw/cora_ml.npz"),
    "DBLP": (matrix, "citation_full/dblp/raw/dblp.npz"),
    "Photo": (matrix, "amazon/Photo/raw/amazon_electronics_photo.npz"),
    "Physics": (matrix, "coauthor/Physics/raw/ms_academic_phy.npz"),
    "FB15k-237": (triples, "fb15k237/FB15k-237/raw"),
}


@pytest.mark.long
@pytest.mark.skipif(
    metis.find_spec("pymetis") is None, reason="pymetis, which is compared with, is not installed"
)
def test_fewer_rows_than_by_metis():
    shares: list[float] = []
    for read, place in GRAPHS.values():
        edges = read(Path(str(DATA)) / place)
        for parts in (2, 4, 8):
            task = Task(edges, parts)
            default = task.measured(METHODS["metis-default"].owners(task))
            found = partition(task).measures
            assert found.imbalance <= LIMIT, (place, parts)
            shares.append(found.volume / default.volume)
    assert np.exp(np.mean(np.log(shares))) <= 0.97, shares


def test_without_metis(monkeypatch: pytest.MonkeyPatch):
    """At most a third of the rows that the most even work would send."""
    monkeypatch.setattr(metis, "find_spec", lambda name: None)
    read, place = GRAPHS["Cora_ML"]
    edges = read(Path(str(DATA)) / place)
    task = Task(edges, 4)
    found = partition(task).measures
    assert found.imbalance <= LIMIT
    assert found.volume <= 0.33 * task.measured(METHODS["greedy"].owners(task)).volume
