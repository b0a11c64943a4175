"""The child process that reads a published data set with PyG and writes it as one file.

The question `{"graph": name, "raw": folder, "place": folder, "file": path}` copies the raw files to
`place`, lets PyG read them there, and writes a `Relations` or a `Labelled` to `file`.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gnnc.bench.graphs import GRAPHS, Real
from gnnc.bench.labelled import Labelled
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


def _labelled(name: str) -> Callable[[Path], Labelled]:
    """Reads a graph without types, and numbers its nodes at random."""

    def read_one(root: Path) -> Labelled:
        from torch_geometric import datasets

        kinds = {
            "cora": lambda: datasets.Planetoid(str(root / "planetoid"), "Cora"),
            "dblp": lambda: datasets.CitationFull(str(root / "citation_full"), "DBLP"),
            "photo": lambda: datasets.Amazon(str(root / "amazon"), "Photo"),
            "physics": lambda: datasets.Coauthor(str(root / "coauthor"), "Physics"),
        }
        data = kinds[name]()[0]
        x, edge_index, y = (v.numpy() for v in (data.x, data.edge_index, data.y))
        return Labelled(x, edge_index, y).in_random_order()

    return read_one


READERS: dict[str, Callable[[Path], Relations | Labelled]] = {
    **{"fb15k-237": fb15k, "aifb": aifb, "acm": acm},
    **{name: _labelled(name) for name in ("cora", "dblp", "photo", "physics")},
}


def _sizes(found: Relations | Labelled) -> Message:
    if isinstance(found, Labelled):
        nodes, features = found.x.shape
        sizes = {"nodes": nodes, "edges": found.edge_index.shape[1], "features": features}
        return {**sizes, "classes": found.classes}
    edges = sum(e.shape[1] for e in found.edges.values())
    return {"nodes": sum(found.nodes.values()), "edges": edges, "relations": len(found.edges)}


def read(graph: str, raw: str, place: str, file: str) -> Message:
    """Reads one data set; raises Refused where it is not of the size that it should be."""
    known = GRAPHS[graph]
    assert isinstance(known, Real)
    shutil.copytree(raw, Path(place) / known.folder / "raw", copy_function=shutil.copyfile)
    found = READERS[graph](Path(place))
    sizes = _sizes(found)
    wanted = {key: GRAPHS[graph].sizes()[key] for key in sizes}
    if sizes != wanted:
        raise Refused(f"--data: {graph} has {sizes} there, and should have {wanted}")
    found.save(Path(file))
    return {}


if __name__ == "__main__":
    serve(lambda question: read(**question))
