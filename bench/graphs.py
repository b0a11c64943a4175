"""What can be timed: models by name, and graphs by size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MODELS = ("gcn", "sage", "gin")
COMPILED = ("gnnc", "gnnc-step")
"""The contestants that gnnc compiles: a model in a training script, and with its loss inside."""

# nodes, edges, features, classes: the sizes of published graphs, with drawn links and features
GRAPHS = {
    "tiny": (1_000, 7_000, 16, 4),
    "small": (20_000, 140_000, 128, 40),
    "pubmed-like": (19_717, 88_648, 500, 3),
    "flickr-like": (89_250, 899_756, 500, 7),
    "arxiv-like": (169_343, 1_166_243, 128, 40),
    "reddit-tenth": (232_965, 11_606_919, 602, 41),
}


def described(model: str, graph: str, hidden: int, layers: int) -> dict[str, Any]:
    """The task as the results tell it."""
    nodes, edges, features, classes = GRAPHS[graph]
    return {
        **{"model": model, "graph": graph, "hidden": hidden, "layers": layers},
        **{"nodes": nodes, "edges": edges, "features": features, "classes": classes},
    }


def title(task: Mapping[str, Any]) -> str:
    """The task as a sentence."""
    return (
        f"{task['model']}, {task['layers']} layers of {task['hidden']}, on {task['graph']}: "
        f"{task['nodes']:,} nodes, {task['edges']:,} edges, {task['features']} features, "
        f"{task['classes']} classes"
    )
