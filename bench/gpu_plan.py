"""What bench/gpu.py does, in the order in which it is worth most: parts, each with the seconds that
it may take and what its child is asked."""

from __future__ import annotations

from dataclasses import dataclass

from ..frontend.tools.children import Message

MODELS = (
    *("gcn", "sage-mean", "sage-max", "gin", "gat", "gatv2", "transformer"),
    *("rgcn", "rgat", "hgt"),
)
"""Those of bench/gpu_models.py, which imports torch."""
EPOCHS = (
    *(("gcn", "arxiv-like"), ("gat", "arxiv-like"), ("sage", "arxiv-like"), ("gin", "arxiv-like")),
    *(("rgcn", "fb15k-like"), ("rgat", "fb15k-like"), ("hgt-typed", "fb15k-like")),
)
"""Models and graphs of `gnnc bench` (bench/graphs.py)."""
WIDTHS = (32, 128)
"""Of the rows that an aggregation alone sums."""
TOOLS = ("memcheck", "racecheck")


@dataclass(frozen=True)
class Part:
    """A part by its name in results; it is ended after so many seconds."""

    name: str
    seconds: float
    question: Message


def parts() -> list[Part]:
    """All parts."""
    return [
        Part("device", 60, {"do": "facts"}),
        *(Part(f"check-{m}", 60, {"do": "check", "model": m}) for m in MODELS),
        Part("copy", 40, {"do": "copy"}),
        *(_epochs(*names) for names in EPOCHS),
        Part("aggregation-arxiv-like", 60, {"do": "aggregation", "graph": "arxiv-like"}),
        *(Part(tool, 100, {"do": "sanitizer", "tool": tool, "seconds": 90}) for tool in TOOLS),
        *(_count(*names) for names in EPOCHS),
    ]


def _epochs(model: str, graph: str) -> Part:
    return Part(f"epochs-{model}-{graph}", 120, {"do": "epochs", "model": model, "graph": graph})


def _count(model: str, graph: str) -> Part:
    return Part(f"count-{model}-{graph}", 120, {"do": "count", "model": model, "graph": graph})
