"""The figure of `gnnc plan --plot`: a step by ranks, what it is made of, and what crosses."""

from __future__ import annotations

from pathlib import Path

from .figures import Figure
from .plan_report import Plan


def draw(plan: Plan, path: Path) -> None:
    """Draws steps, halo and memory over the number of ranks, both logarithmic.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    figure = Figure(1, 3)
    steps, crossing, memory = figure.panels
    found = plan.predictions
    ranks = [p.ranks for p in found]
    steps.loglog(ranks, [p.seconds for p in found], "o-", label="step")
    steps.loglog(ranks, [p.work_seconds for p in found], "o--", label="work")
    if messages := [(p.ranks, p.message_seconds) for p in found if p.message_seconds]:
        steps.loglog(*zip(*messages, strict=True), "o--", label="messages")
    if simulated := [(p.ranks, p.simulated) for p in found if p.simulated is not None]:
        steps.loglog(*zip(*simulated, strict=True), "x", label="simulated")
    steps.loglog(ranks, [plan.alone / p for p in ranks], ":", label="a rank's, divided")
    steps.set_ylabel("seconds")
    for layer in range(len(plan.layers)):
        each = [(p.ranks, p.layers[layer]) for p in found]
        size = [(p, t.forward_bytes + t.backward_bytes) for p, t in each if t.forward_bytes]
        if size:
            crossing.loglog(*zip(*size, strict=True), "o-", label=f"layer {layer + 1}")
    crossing.set_ylabel("bytes that cross in a step")
    memory.loglog(ranks, [p.memory for p in found], "o-")
    memory.set_ylabel("bytes of a rank")
    for axes in figure.panels:
        axes.set_xlabel("ranks")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small")
    figure.figure.suptitle(
        f"{plan.shape.model}, predicted: {plan.nodes:,.0f} nodes, {plan.edges:,.0f} edges",
        fontsize="medium",
    )
    figure.save(path)
