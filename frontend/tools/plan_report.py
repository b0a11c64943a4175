"""What `gnnc plan` found: its tables, and the same as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..plan import cost, schemes
from ..plan.constants import Constants
from ..plan.cost import Prediction
from ..plan.layers import Layer, model
from ..plan.loads import Loads
from ..plan.loads import alone as loads_alone
from ..plan.schemes import Scheme
from .report import bytes_text, seconds_text, table


@dataclass(frozen=True)
class Shape:
    """What is trained: a model, the numbers of a node before, between and after its layers, and the
    steps of an epoch."""

    model: str
    widths: tuple[int, ...]
    steps: int = 1


@dataclass(frozen=True)
class Plan:
    """Predictions of one training, by ranks ascending.

    Attributes:
        alone: a step of one rank.
        schemes: for each number of ranks and each layer, the ways to spread it, the fastest first.
    """

    shape: Shape
    constants: Constants
    nodes: float
    edges: float
    layers: tuple[Layer, ...]
    alone: float
    predictions: Sequence[Prediction]
    schemes: Sequence[Sequence[Sequence[Scheme]]]


def planned(shape: Shape, loads: Sequence[Loads], constants: Constants, chunks: int = 1) -> Plan:
    """The plan for loads of one graph on several numbers of ranks.

    Raises:
        ValueError: as `layers.model` and `simulate.simulate` do.
    """
    nodes, edges = loads[0].nodes, loads[0].edges
    layers = model(shape.model, shape.widths, nodes, edges)
    alone = cost.predict(layers, loads_alone(nodes, edges), constants)
    return Plan(
        shape,
        constants,
        nodes,
        edges,
        layers,
        alone.seconds,
        [cost.predict(layers, one, constants, chunks=chunks) for one in loads],
        [[schemes.compared(layer, one, constants) for layer in layers] for one in loads],
    )


def results(plan: Plan) -> Mapping[str, Any]:
    """All of it as plain data."""
    return {
        "graph": {"nodes": plan.nodes, "edges": plan.edges},
        "training": asdict(plan.shape),
        "constants": asdict(plan.constants),
        "layers": [asdict(layer) for layer in plan.layers],
        "predictions": [
            {
                **asdict(found),
                "epoch_seconds": found.seconds * plan.shape.steps,
                "halo_rows": found.halo_rows,
                "halo_bytes": found.halo_bytes,
                "schemes": [[{**asdict(s), "seconds": s.seconds} for s in of] for of in compared],
            }
            for found, compared in zip(plan.predictions, plan.schemes, strict=True)
        ],
    }


def report(plan: Plan) -> str:
    """A line a number of ranks, and then one for each of its layers."""
    widths = ", ".join(map(str, plan.shape.widths))
    title = (
        f"PREDICTION: {plan.shape.model} of {widths} numbers a node, on {plan.nodes:,.0f} nodes "
        f"and {plan.edges:,.0f} edges"
    )
    compared = _compared(plan)
    parts = [title, "", table(_steps(plan))]
    return "\n".join([*parts, "", table(compared)] if len(compared) > 1 else parts)


def _steps(plan: Plan) -> list[list[str]]:
    heading = ["ranks", "step", "epoch", "simulated", "work", "messages", "speed-up", "imbalance"]
    lines = [[*heading, "halo rows", "halo bytes", "memory a rank"]]
    for p in plan.predictions:
        lines.append(
            [
                f"{p.ranks:,}",
                seconds_text(p.seconds),
                seconds_text(p.seconds * plan.shape.steps),
                "" if p.simulated is None else seconds_text(p.simulated),
                seconds_text(p.work_seconds),
                seconds_text(p.message_seconds),
                f"{plan.alone / p.seconds:.2f}" if p.seconds else "",
                f"{p.imbalance:.2f}",
                f"{p.halo_rows:,.0f}",
                _bytes(p.halo_bytes),
                _bytes(p.memory),
            ]
        )
    return lines


NAMES = {schemes.HALO: "halo", schemes.REPLICATED: "1.5D", schemes.COLUMNS: "columns"}


def _compared(plan: Plan) -> list[list[str]]:
    lines = [["ranks", "layer", "rows", "bytes", *NAMES.values(), "fastest"]]
    for p, of_layers in zip(plan.predictions, plan.schemes, strict=True):
        if p.ranks == 1:
            continue
        for i, (traffic, found) in enumerate(zip(p.layers, of_layers, strict=True)):
            by_name = {s.name: s for s in found}
            cells = [_scheme(by_name.get(name)) for name in NAMES]
            rows = traffic.forward_rows + traffic.backward_rows
            size = traffic.forward_bytes + traffic.backward_bytes
            line = [f"{p.ranks:,}", str(i + 1), f"{rows:,.0f}", _bytes(size)]
            lines.append([*line, *cells, NAMES[found[0].name]])
    return lines


def _scheme(found: Scheme | None) -> str:
    if found is None:
        return ""
    copies = f" (c = {found.copies})" if found.copies > 1 else ""
    return seconds_text(found.seconds) + copies


def _bytes(count: float) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**34 else bytes_text(count)


def constants_text(constants: Constants) -> str:
    """A line a constant."""
    lines = [["constant", "value"], *([k, f"{v:.3g}"] for k, v in asdict(constants).items())]
    return table(lines)
