"""Scripts in the style of DGL's examples on published graphs: DGL, compiled with dgl installed, and
compiled without it have equal losses for 20 steps.

The data sets lie where GNNC_DATA says, in the folders that PyG reads. They are loaded from a copy,
for PyG writes beside what it reads.
"""

from __future__ import annotations

import copy
import importlib
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric import datasets

import gnnc
from gnnc.bench.dgl_shim import install

from .families import Stack

install()
dgl = pytest.importorskip("dgl", reason="dgl has no wheel for this Python or machine")
importlib.import_module("dgl.nn.pytorch")

DATA = os.environ.get("GNNC_DATA")
pytestmark = pytest.mark.skipif(
    DATA is None, reason="GNNC_DATA does not name a folder with published data"
)
STEPS = 20


@dataclass
class Script:
    """A model, what its calls take, and the loss of what they give."""

    model: nn.Module
    args: tuple[Any, ...]
    loss: Callable[[Tensor], Tensor]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A copy of the folder of a data set."""
    root = tmp_path_factory.mktemp("data")

    def copied(name: str) -> str:
        if not (root / name).exists():
            shutil.copytree(f"{DATA}/{name}", root / name, copy_function=shutil.copyfile)
        return str(root / name)

    return copied


def of_edges(library: Any, edges: Tensor, n: int) -> Any:
    return library.graph((edges[0], edges[1]), num_nodes=n)


def classified(y: Tensor, rows: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda out: F.cross_entropy(out[rows], y[rows])


def on_cora(library: Any, folder: Callable[[str], str], layers: Callable[..., Any]) -> Script:
    """Node classification with self loops, by the 140 labelled nodes."""
    d = datasets.Planetoid(folder("planetoid"), "Cora")[0]
    g = library.add_self_loop(of_edges(library, d.edge_index, d.num_nodes))
    model = Stack(*layers(library.nn.pytorch, d.num_features, int(d.y.max()) + 1))
    return Script(model, (g, d.x), classified(d.y, d.train_mask))


def on_photo(library: Any, folder: Callable[[str], str]) -> Script:
    d = datasets.Amazon(folder("amazon"), "Photo")[0]
    conv = library.nn.pytorch.SAGEConv
    model = Stack(conv(d.num_features, 16, "mean"), conv(16, int(d.y.max()) + 1, "mean"))
    g = of_edges(library, d.edge_index, d.num_nodes)
    return Script(model, (g, d.x), classified(d.y, torch.arange(d.num_nodes) % 10 == 0))


class OfPapers(nn.Module):
    """Types of nodes with features of their own, projected to one width, then relations."""

    def __init__(self, library: Any, widths: dict[str, int], relations: list[str]) -> None:
        super().__init__()
        layers = library.nn.pytorch
        self.project = nn.ModuleDict({name: nn.Linear(w, 16) for name, w in widths.items()})
        self.conv = layers.HeteroGraphConv(
            {r: layers.GraphConv(16, 3, norm="right", allow_zero_in_degree=True) for r in relations}
        )

    def forward(self, g: Any, features: dict[str, Tensor]) -> Tensor:
        h = {name: self.project[name](x).tanh() for name, x in features.items()}
        return self.conv(g, h)["paper"]


def on_acm(library: Any, folder: Callable[[str], str]) -> Script:
    root = folder("hgb")
    with zipfile.ZipFile(f"{root}/acm/raw/ACM.zip") as packed:
        packed.extractall(f"{root}/acm/raw")
    d = datasets.HGBDataset(root, "acm")[0]
    edges = {(a, f"{a}-{r}-{b}", b): d[a, r, b].edge_index for a, r, b in d.edge_types}
    counts = {name: d[name].num_nodes for name in d.node_types}
    g = library.heterograph({t: (e[0], e[1]) for t, e in edges.items()}, counts)
    x = {n: d[n].x if "x" in d[n] else torch.eye(counts[n])[:, :32] for n in d.node_types}
    x = {name: value.double() for name, value in x.items()}
    model = OfPapers(library, {n: v.shape[1] for n, v in x.items()}, [t[1] for t in edges])
    return Script(model, (g, x), classified(d["paper"].y, d["paper"].train_mask))


class OfFacts(nn.Module):
    """A table of entities, relational layers, and DistMult on triples."""

    def __init__(self, library: Any, entities: int, relations: int) -> None:
        super().__init__()
        self.table, self.relations = nn.Embedding(entities, 8), nn.Embedding(relations, 8)
        self.conv = library.nn.pytorch.RelGraphConv(8, 8, relations, "basis", 4)

    def forward(self, g: Any, types: Tensor, triples: Tensor, kinds: Tensor) -> Tensor:
        h = self.conv(g, self.table.weight, types).tanh()
        return (h[triples[0]] * self.relations(kinds) * h[triples[1]]).sum(1)


def on_facts(library: Any, folder: Callable[[str], str]) -> Script:
    d = datasets.RelLinkPredDataset(folder("fb15k237"), "FB15k-237")[0]
    edges, kinds = d.edge_index, d.edge_type
    relations = int(kinds.max()) + 1
    g = of_edges(library, edges[:, :20_000], d.num_nodes)
    model = OfFacts(library, d.num_nodes, relations)
    triples, asked = edges[:, -4000:], kinds[-4000:]
    truth = (torch.arange(4000) % 2).double()
    args = (g, kinds[:20_000], triples, asked)
    return Script(model, args, lambda out: F.binary_cross_entropy_with_logits(out, truth))


SCRIPTS: dict[str, Callable[..., Script]] = {
    "cora-gcn": lambda library, folder: on_cora(
        library, folder, lambda nn_, a, b: (nn_.GraphConv(a, 16), nn_.GraphConv(16, b))
    ),
    "cora-gat": lambda library, folder: on_cora(
        library, folder, lambda nn_, a, b: (nn_.GATConv(a, 4, 4), nn_.GATConv(16, b, 1))
    ),
    "photo-sage": on_photo,
    "acm-hetero": on_acm,
    "fb15k-links": on_facts,
}


def losses(script: Script, call: Callable[..., Tensor]) -> list[float]:
    """Of training with Adam, before each step."""
    optimizer = torch.optim.Adam(script.model.parameters(), 0.01)
    found = list[float]()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = script.loss(call(*script.args))
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_losses(name: str, folder: Callable[[str], str]) -> None:
    torch.manual_seed(0)
    eager = in_double(SCRIPTS[name](dgl, folder))
    state = copy.deepcopy(eager.model.state_dict())
    expected = losses(eager, eager.model)
    assert expected[-1] < expected[0]
    for library in (dgl, importlib.import_module("gnnc.dgl")):
        script = in_double(SCRIPTS[name](library, folder))
        script.model.load_state_dict(state)
        compiled = gnnc.compile(script.model)
        torch.testing.assert_close(losses(script, compiled), expected, rtol=1e-6, atol=0)
        assert gnnc.explain(compiled).fallbacks == []


def in_double(script: Script) -> Script:
    """PyG's data sets hold float32."""
    args = tuple(
        x.double() if isinstance(x, Tensor) and x.is_floating_point() else x for x in script.args
    )
    return Script(script.model, args, script.loss)
