"""The child process that reads a published data set with PyG and writes it as one file.

The question `{"graph": name, "raw": folder, "place": folder, "file": path}` copies the raw files to
`place`, lets PyG read them there, and writes a `Relations` to `file`.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gnnc.bench.graphs import GRAPHS
from gnnc.bench.relations import Relations
from gnnc.frontend.tools.children import Message, Refused, serve


def of_one_type(nodes: int, edge_index: np.ndarray, edge_type: np.ndarray) -> Relations:
    """A graph whose nodes have no types, its relations in the order of their numbers."""
    order = np.argsort(edge_type, kind="stable")
    counts = np.bincount(edge_type)
    parts = np.split(edge_index[:, order], np.cumsum(counts)[:-1], axis=1)
    edges = {("node", f"r{i}", "node"): part for i, part in enumerate(parts)}
    return Relations({"node": nodes}, edges, "node")


def fb15k(root: Path) -> Relations:
    """The training edges and their inverses."""
    from torch_geometric.datasets import RelLinkPredDataset

    data = RelLinkPredDataset(str(root / "fb15k237"), "FB15k-237")[0]
    return of_one_type(data.num_nodes, data.edge_index.numpy(), data.edge_type.numpy())


def aifb(root: Path) -> Relations:
    """All edges and their inverses."""
    try:
        import pandas  # noqa: F401
        import rdflib  # noqa: F401
    except ImportError as error:
        raise Refused(f"aifb: PyG reads it with {error.name}; pip install gnnc[bench]") from error
    from torch_geometric.datasets import Entities

    data = Entities(str(root / "entities"), "AIFB")[0]
    return of_one_type(data.num_nodes, data.edge_index.numpy(), data.edge_type.numpy())


def acm(root: Path) -> Relations:
    """Papers, authors, subjects and terms; the papers have labels."""
    from torch_geometric.datasets import HGBDataset

    with zipfile.ZipFile(root / "hgb/acm/raw/ACM.zip") as packed:
        packed.extractall(root / "hgb/acm/raw")
    data = HGBDataset(str(root / "hgb"), "ACM")[0]
    nodes = {t: data[t].num_nodes for t in data.node_types}
    edges = {t: data[t].edge_index.numpy() for t in data.edge_types}
    return Relations(nodes, edges, "paper")


READERS: dict[str, Callable[[Path], Relations]] = {"fb15k-237": fb15k, "aifb": aifb, "acm": acm}


def read(graph: str, raw: str, place: str, file: str) -> Message:
    """Reads one data set; raises Refused where it is not of the size that it should be."""
    shutil.copytree(raw, Path(place) / GRAPHS[graph].folder / "raw")
    found = READERS[graph](Path(place))
    edges = sum(e.shape[1] for e in found.edges.values())
    sizes = {"nodes": sum(found.nodes.values()), "edges": edges, "relations": len(found.edges)}
    wanted = {key: GRAPHS[graph].sizes()[key] for key in sizes}
    if sizes != wanted:
        raise Refused(f"--data: {graph} has {sizes} there, and should have {wanted}")
    found.save(Path(file))
    return {}


if __name__ == "__main__":
    serve(lambda question: read(**question))
