"""What can be timed: models by name, and graphs of the kinds that they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..frontend.tools.children import Message, Refused

COMPILED = ("gnnc", "gnnc-step", "gnnc-train")
"""The contestants that gnnc compiles: a model in a training script, with its loss inside, and with
the optimizer's update as well."""


@dataclass(frozen=True)
class Model:
    """A kind of model: whether its edges have types, how many layers it usually has, and how wide
    it is between them."""

    relational: bool
    layers: int
    hidden: int


MODELS = {
    "gcn": Model(False, 3, 32),
    "sage": Model(False, 3, 32),
    "gin": Model(False, 3, 32),
    "gat": Model(False, 2, 64),
    "rgcn": Model(True, 1, 64),
    "rgat": Model(True, 1, 64),
    "hgt": Model(True, 1, 64),
    "hgt-typed": Model(True, 1, 64),
}
"""`hgt` takes dictionaries by type, as PyG's layer does; `hgt-typed` is the same layer on one
tensor of all nodes, with the types of nodes and edges as tensors. See bench/relational_models.py.
"""

RELATIONAL_WIDTH = 64
"""Features of each node, and classes, of every relational task: both are drawn."""

EdgeType = tuple[str, str, str]
"""Type of the source, name of the relation, type of the destination."""


@dataclass(frozen=True)
class PlainGraph:
    """Drawn links, features and labels with the sizes of a published graph."""

    nodes: int
    edges: int
    features: int
    classes: int

    relational = False

    def sizes(self) -> Message:
        """As results tell of it."""
        sizes = {"nodes": self.nodes, "edges": self.edges}
        return {**sizes, "features": self.features, "classes": self.classes}

    def question(self, file: str | None) -> Any:
        """As a child is asked to make it (bench/tasks.py)."""
        return [self.nodes, self.edges, self.features, self.classes]


@dataclass(frozen=True)
class RealGraph(PlainGraph):
    """A published data set as it is: features and classes too. See `RealRelations`."""

    folder: str
    files: Sequence[str]

    def question(self, file: str | None) -> Any:
        assert file is not None
        return {"file": file}


class _Relational:
    """What relational graphs have in common: the sizes of their tasks."""

    relational = True

    def _sizes(self, nodes: int, edges: int, relations: int, node_types: int) -> Message:
        sizes = {"nodes": nodes, "edges": edges, "relations": relations, "node_types": node_types}
        return {**sizes, "features": RELATIONAL_WIDTH, "classes": RELATIONAL_WIDTH}


@dataclass(frozen=True)
class DrawnRelations(_Relational):
    """Nodes by type, and edges by relation to be drawn (bench/relations.py)."""

    nodes: Mapping[str, int]
    edges: Mapping[EdgeType, int]
    target: str
    scattered: bool = False

    def sizes(self) -> Message:
        nodes, edges = sum(self.nodes.values()), sum(self.edges.values())
        return self._sizes(nodes, edges, len(self.edges), len(self.nodes))

    def question(self, file: str | None) -> Any:
        edges = [[*kind, count] for kind, count in self.edges.items()]
        drawn = {"nodes": dict(self.nodes), "edges": edges}
        return {**drawn, "target": self.target, "scattered": self.scattered}


@dataclass(frozen=True)
class RealRelations(_Relational):
    """A published data set in a folder that the user names, read by bench/real.py.

    The numbers are those of the data set; other data is refused. `folder` is its place there, and
    `files` what must lie in it.
    """

    nodes: int
    edges: int
    relations: int
    node_types: int
    folder: str
    files: Sequence[str]

    def sizes(self) -> Message:
        return self._sizes(self.nodes, self.edges, self.relations, self.node_types)

    def question(self, file: str | None) -> Any:
        assert file is not None
        return {"file": file}


Real = RealGraph | RealRelations
Graph = PlainGraph | DrawnRelations | Real


def one_type(
    nodes: int, edges: int, relations: int, skew: float = 0.8, scattered: bool = False
) -> DrawnRelations:
    """A knowledge graph: nodes of one type, relations and their inverses.

    The k-th largest relation has about k ** -skew as many edges as the largest. `edges` and
    `relations` count the inverses.
    """
    shares = [(k + 1) ** -skew for k in range(relations // 2)]
    bounds = [0.0]
    for share in shares:
        bounds.append(bounds[-1] + share / sum(shares))
    cuts = [round(b * (edges // 2)) for b in bounds]
    counts = [b - a for a, b in zip(cuts, cuts[1:], strict=False)]
    forward = {("node", f"r{k}", "node"): count for k, count in enumerate(counts)}
    return DrawnRelations({"node": nodes}, with_inverses(forward), "node", scattered)


def with_inverses(edges: Mapping[EdgeType, int]) -> dict[EdgeType, int]:
    """Each relation, and then the inverse of each, with as many edges."""
    inverses = {(b, f"rev_{name}", a): count for (a, name, b), count in edges.items()}
    return {**edges, **inverses}


# the sizes of published graphs
GRAPHS: dict[str, Graph] = {
    "tiny": PlainGraph(1_000, 7_000, 16, 4),
    "small": PlainGraph(20_000, 140_000, 128, 40),
    "pubmed-like": PlainGraph(19_717, 88_648, 500, 3),
    "flickr-like": PlainGraph(89_250, 899_756, 500, 7),
    "arxiv-like": PlainGraph(169_343, 1_166_243, 128, 40),
    "reddit-tenth": PlainGraph(232_965, 11_606_919, 602, 41),
    "cora": RealGraph(
        *(2_708, 10_556, 1_433, 7),
        "planetoid/Cora",
        [f"ind.cora.{n}" for n in (*("x", "tx", "allx", "y", "ty", "ally"), "graph", "test.index")],
    ),
    "dblp": RealGraph(17_716, 105_734, 1_639, 4, "citation_full/dblp", ["dblp.npz"]),
    "photo": RealGraph(7_650, 238_162, 745, 8, "amazon/Photo", ["amazon_electronics_photo.npz"]),
    "physics": RealGraph(34_493, 495_924, 8_415, 5, "coauthor/Physics", ["ms_academic_phy.npz"]),
    "tiny-relations": one_type(300, 2_000, 10),
    "aifb-like": one_type(8_285, 58_086, 90),
    "fb15k-like": one_type(14_541, 620_232, 474),
    # nearly every edge has a source of its own in its relation
    "scattered": one_type(40_000, 200_000, 50, scattered=True),
    # ogbn-mag: nodes and edges by type, a tenth of each
    "mag-tenth": DrawnRelations(
        {"paper": 73_638, "author": 113_464, "institution": 874, "field": 5_996},
        with_inverses(
            {
                ("paper", "cites", "paper"): 541_627,
                ("author", "writes", "paper"): 714_566,
                ("paper", "has_topic", "field"): 750_507,
                ("author", "affiliated_with", "institution"): 104_399,
            }
        ),
        "paper",
    ),
    "fb15k-237": RealRelations(
        *(14_541, 544_230, 474, 1),
        "fb15k237/FB15k-237",
        ["entities.dict", "relations.dict", "train.txt", "valid.txt", "test.txt"],
    ),
    "aifb": RealRelations(
        *(8_285, 58_086, 90, 1),
        "entities/aifb",
        ["aifb_stripped.nt.gz", "completeDataset.tsv", "trainingSet.tsv", "testSet.tsv"],
    ),
    "acm": RealRelations(10_942, 547_872, 8, 4, "hgb/acm", ["ACM.zip"]),
}

USUAL = {False: "arxiv-like", True: "fb15k-like"}
"""The graph of a model for which none is named, by whether the model is relational."""


def tasks(models: Sequence[str], graphs: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """(graph, model) for all that go together; without graphs, each model's usual one.

    Raises:
        Refused: a graph that none of the models takes, or a model that takes none of the graphs.
    """
    names = list(dict.fromkeys(USUAL[MODELS[m].relational] for m in models))
    chosen = [
        (graph, model)
        for graph in (names if graphs is None else graphs)
        for model in models
        if GRAPHS[graph].relational == MODELS[model].relational
    ]
    for option, given, place in (("graphs", graphs or (), 0), ("models", models, 1)):
        for name in given:
            if not any(task[place] == name for task in chosen):
                raise Refused(
                    f"--{option} {name}: models with edge types (rgcn, rgat, hgt, ..) go with "
                    "graphs that have them (fb15k-like, ..), and the others with the others"
                )
    yield from chosen


def described(
    model: str, graph: str, hidden: int | None = None, layers: int | None = None
) -> dict[str, Any]:
    """The task as the results tell it."""
    kind = MODELS[model]
    hidden, layers = hidden or kind.hidden, layers or kind.layers
    shape = {"model": model, "graph": graph, "hidden": hidden, "layers": layers}
    return {**shape, **GRAPHS[graph].sizes()}


def title(task: Mapping[str, Any]) -> str:
    """The task as a sentence."""
    types = f" of {task['relations']} relations" if "relations" in task else ""
    layers = f"{task['layers']} layer{'s' if task['layers'] > 1 else ''}"
    what = ", inference" if task.get("inference") else ""
    return (
        f"{task['model']}{what}, {layers} of {task['hidden']}, on {task['graph']}: "
        f"{task['nodes']:,} nodes, {task['edges']:,} edges{types}, {task['features']} features, "
        f"{task['classes']} classes"
    )
