"""What `gnnc bench accuracy` trains: models as PyG's own examples have them, on published data.

RGCN on AIFB (Schlichtkrull et al., ESWC 2018; PyG's examples/rgcn.py), HGT on ACM (Hu et al.,
WWW 2020; examples/hetero/hgt_dblp.py), RGCN with DistMult on FB15k-237 (Schlichtkrull et al.;
examples/rgcn_link_pred.py), with their hyper-parameters where nothing else is said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
import torch_geometric
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GAE, FastRGCNConv, HGTConv, RGCNConv
from torch_geometric.typing import Metadata

from ..frontend.tools.children import Message, Refused
from .ranking import Known, reciprocal_ranks

BASES = 30
BLOCK = 16
"""Rows and columns of a block of the block-diagonal weights."""
HEADS = 2

# With pyg-lib and without this, PyG's RGCNConv takes the mean over all in-edges of a node, and not
# over those of each relation, where it thinks that faster.
torch_geometric.backend.use_segment_matmul = False


class Choice(Protocol):
    """What a training is made from, besides data: the features between layers, the seed of what
    is drawn apart from parameters and dropout, and whether it will be compiled."""

    @property
    def hidden(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def compiled(self) -> bool: ...


class Training(ABC):
    """A model with its optimiser; `parts` are the modules that are compiled, `clip` is the norm
    that gradients are cut to."""

    clip: float | None = None

    def __init__(self, model: nn.Module, lr: float, weight_decay: float = 0.0):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr, weight_decay=weight_decay)

    @property
    def parts(self) -> list[nn.Module]:
        return [self.model]

    @abstractmethod
    def loss(self) -> Tensor:
        """Of one epoch, a scalar."""

    @abstractmethod
    def score(self) -> float:
        """On the test set, of the model as it is."""


@dataclass(frozen=True)
class Task:
    """How the data is read from PyG's `root`, what a training on it is, and the sizes to report."""

    load: Callable[[str], Any]
    training: Callable[[Any, Choice], Training]
    sizes: Callable[[Any], Message]


def _typed_sizes(data: Data) -> Message:
    relations = int(data.edge_type.max()) + 1
    return {"nodes": data.num_nodes, "edges": data.num_edges, "relations": relations}


def _accuracy(logits: Tensor, y: Tensor) -> float:
    return (logits.argmax(1) == y).float().mean().item()


# ------------------------------------------------------------------------------ AIFB


def load_aifb(root: str) -> Data:
    """8285 nodes without features, 90 relations; 140 nodes with labels to train on, 36 to test.

    Raises:
        Refused: the packages that PyG reads it with are not installed.
    """
    from torch_geometric.datasets import Entities

    try:
        return Entities(root, "AIFB")[0]
    except ImportError as error:
        raise Refused(f"aifb: PyG reads it with {error.name}; pip install gnnc[bench]") from error


class RGCN(nn.Module):
    """Two layers of a kind on nodes without features; gives logits (n x classes)."""

    def __init__(self, layer: type[RGCNConv], nodes: int, hidden: int, classes: int, types: int):
        super().__init__()
        self.first = layer(nodes, hidden, types, num_bases=BASES)
        self.second = layer(hidden, classes, types, num_bases=BASES)

    def forward(self, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        h = self.first(None, edge_index, edge_type).relu()
        return self.second(h, edge_index, edge_type)


class Affiliations(Training):
    """RGCN on AIFB: the group that a person belongs to.

    PyG's own example takes FastRGCNConv for this data set, and so does PyG's side here. It has the
    parameters of RGCNConv, draws them alike and computes the same; what is compiled is RGCNConv.
    """

    def __init__(self, data: Data, choice: Choice):
        layer = RGCNConv if choice.compiled else FastRGCNConv
        classes = int(torch.cat([data.train_y, data.test_y]).max()) + 1
        sizes = _typed_sizes(data)
        model = RGCN(layer, sizes["nodes"], choice.hidden, classes, sizes["relations"])
        super().__init__(model, lr=0.01, weight_decay=5e-4)
        self.data = data

    def _logits(self) -> Tensor:
        return self.model(self.data.edge_index, self.data.edge_type)

    def loss(self) -> Tensor:
        return F.cross_entropy(self._logits()[self.data.train_idx], self.data.train_y)

    def score(self) -> float:
        return _accuracy(self._logits()[self.data.test_idx], self.data.test_y)


# ------------------------------------------------------------------------------ ACM


def load_acm(root: str) -> HeteroData:
    """Papers (907 with labels to train on, 1059 to test), authors, subjects and terms.

    Terms have no features: each gets a single 1, as conferences do in PyG's example.
    """
    from torch_geometric.datasets import HGBDataset

    data = HGBDataset(root, "ACM")[0]
    for store in data.node_stores:
        if "x" not in store:
            store.x = torch.ones(store.num_nodes, 1)
    return data


class HGT(nn.Module):
    """A linear layer for each type of node, a layer of HGT, and a linear layer on the papers;
    gives logits (papers x classes)."""

    def __init__(self, widths: Mapping[str, int], hidden: int, classes: int, metadata: Metadata):
        super().__init__()
        self.project = nn.ModuleDict({t: nn.Linear(width, hidden) for t, width in widths.items()})
        self.conv = HGTConv(hidden, hidden, metadata, HEADS)
        self.out = nn.Linear(hidden, classes)

    def forward(
        self, x: Mapping[str, Tensor], edge_index: Mapping[tuple[str, str, str], Tensor]
    ) -> Tensor:
        h = {t: self.project[t](features).relu() for t, features in x.items()}
        return self.out(self.conv(h, edge_index)["paper"])


class Papers(Training):
    """HGT on ACM: the field of a paper."""

    def __init__(self, data: HeteroData, choice: Choice):
        widths = {t: data[t].x.shape[1] for t in data.node_types}
        classes = int(data["paper"].y.max()) + 1
        model = HGT(widths, choice.hidden, classes, data.metadata())
        super().__init__(model, lr=0.005, weight_decay=1e-3)
        self.inputs = data.x_dict, data.edge_index_dict
        self.paper = data["paper"]

    def _logits(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Of the papers in a mask, and their classes."""
        return self.model(*self.inputs)[mask], self.paper.y[mask]

    def loss(self) -> Tensor:
        return F.cross_entropy(*self._logits(self.paper.train_mask))

    def score(self) -> float:
        return _accuracy(*self._logits(self.paper.test_mask))


def _paper_sizes(data: HeteroData) -> Message:
    relations = len(data.edge_types)
    return {"nodes": data.num_nodes, "edges": data.num_edges, "relations": relations}


# ------------------------------------------------------------------------------ FB15k-237


def load_fb15k(root: str) -> Data:
    """The training triples with their inverses as the graph, and the triples of each split."""
    from torch_geometric.datasets import RelLinkPredDataset

    return RelLinkPredDataset(root, "FB15k-237")[0]


class Encoder(nn.Module):
    """A vector for each entity, learned, and two layers of RGCN with block-diagonal weights."""

    def __init__(self, nodes: int, hidden: int, relations: int):
        super().__init__()
        if hidden % BLOCK:
            raise Refused(f"--hidden {hidden}: must be a multiple of {BLOCK} for fb15k-237")
        blocks = hidden // BLOCK
        self.entities = nn.Parameter(nn.init.xavier_uniform_(torch.empty(nodes, hidden)))
        self.first = RGCNConv(hidden, hidden, relations, num_blocks=blocks)
        self.second = RGCNConv(hidden, hidden, relations, num_blocks=blocks)

    def forward(self, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        h = self.first(self.entities, edge_index, edge_type).relu()
        h = F.dropout(h, 0.2, self.training)
        return self.second(h, edge_index, edge_type)


class DistMult(nn.Module):
    """The score of triples: sum over features of subject, relation and object."""

    def __init__(self, relations: int, hidden: int):
        super().__init__()
        self.relations = nn.Parameter(nn.init.xavier_uniform_(torch.empty(relations, hidden)))

    def forward(self, z: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        subject, obj = edge_index
        return (z[subject] * self.relations[edge_type] * z[obj]).sum(1)


class Links(Training):
    """RGCN with DistMult on FB15k-237: which triples hold.

    An epoch scores each training triple, and one more for each in which subject or object is
    replaced by an entity at random; both ways draw the same ones.
    """

    clip = 1.0

    def __init__(self, data: Data, choice: Choice):
        sizes = _typed_sizes(data)
        encoder = Encoder(sizes["nodes"], choice.hidden, sizes["relations"])
        model = GAE(encoder, DistMult(sizes["relations"] // 2, choice.hidden))
        super().__init__(model, lr=0.01)
        self.data = data
        self.random = torch.Generator().manual_seed(choice.seed)

    @property
    def parts(self) -> list[nn.Module]:
        return [self.model.encoder, self.model.decoder]

    def _encoded(self) -> Tensor:
        return self.model.encode(self.data.edge_index, self.data.edge_type)

    def _corrupted(self) -> Tensor:
        """The training triples with one end of each replaced (2 x e)."""
        edges = self.data.train_edge_index.clone()
        columns = torch.arange(edges.shape[1])
        end = torch.randint(2, columns.shape, generator=self.random)
        others = torch.randint(self.data.num_nodes, columns.shape, generator=self.random)
        edges[end, columns] = others
        return edges

    def loss(self) -> Tensor:
        z, types = self._encoded(), self.data.train_edge_type
        true = self.model.decode(z, self.data.train_edge_index, types)
        false = self.model.decode(z, self._corrupted(), types)
        labels = torch.cat([torch.ones_like(true), torch.zeros_like(false)])
        entropy = F.binary_cross_entropy_with_logits(torch.cat([true, false]), labels)
        return entropy + 0.01 * (z.square().mean() + self.model.decoder.relations.square().mean())

    def score(self) -> float:
        """The mean reciprocal rank over both ends of the test triples, other true triples of any
        split left out of the ranking."""
        z, relations = self._encoded(), self.model.decoder.relations
        splits = [(self.data[f"{s}_edge_index"], self.data[f"{s}_edge_type"]) for s in SPLITS]
        ends, types = torch.cat([e for e, _ in splits], 1), torch.cat([t for _, t in splits])
        test, test_types = splits[-1]
        found: list[Tensor] = []
        for given, asked in ((0, 1), (1, 0)):
            known = Known(types * len(z) + ends[given], ends[asked])
            keys = test_types * len(z) + test[given]
            queries = z[test[given]] * relations[test_types]
            found.append(reciprocal_ranks(queries, z, test[asked], keys, known))
        return torch.cat(found).mean().item()


SPLITS = ("train", "valid", "test")


TASKS = {
    "aifb": Task(load_aifb, Affiliations, _typed_sizes),
    "acm": Task(load_acm, Papers, _paper_sizes),
    "fb15k-237": Task(load_fb15k, Links, _typed_sizes),
}
