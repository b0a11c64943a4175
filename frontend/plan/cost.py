"""What a step takes on ranks: time in closed form and by simulation, rows and bytes, memory.

The time is that of messages which are not hidden, after R. Hockney, *The communication challenge
for MPP*, Parallel Computing 1994: alpha for each and their bytes over the bandwidth, on top of the
work of the rank that has most of both. It is exact where all ranks are alike; where they are not,
ranks also wait for each other in between, which only the simulation sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import simulate
from .constants import Constants
from .layers import NUMBER_BYTES, Layer
from .loads import Floats, Loads
from .stages import BACKWARD, BOTH, FORWARD, Stage, step_stages

SIMULATED = 64
"""The most ranks that are simulated unless more are asked for: messages grow with their square."""


@dataclass(frozen=True)
class LayerTraffic:
    """What one layer sends in a step, of all ranks: rows and bytes forward, and backward."""

    forward_rows: float
    forward_bytes: float
    backward_rows: float
    backward_bytes: float


@dataclass(frozen=True)
class Prediction:
    """A step of training on `ranks` ranks.

    Attributes:
        seconds: in closed form.
        simulated: in virtual time; None where it was not.
        work_seconds, message_seconds: of the rank that takes longest, `message_seconds` what is not
            hidden behind work.
        imbalance: the greatest work of a rank over the mean.
        layers: what crosses, by layer.
        sent_bytes, sent_messages: of the rank that sends most, all-reduces included.
        memory: bytes of the rank that takes most.
    """

    ranks: int
    seconds: float
    simulated: float | None
    work_seconds: float
    message_seconds: float
    imbalance: float
    layers: tuple[LayerTraffic, ...]
    sent_bytes: float
    sent_messages: float
    memory: float

    @property
    def halo_rows(self) -> float:
        """Rows that cross in a step."""
        return sum(t.forward_rows + t.backward_rows for t in self.layers)

    @property
    def halo_bytes(self) -> float:
        """Bytes of these rows."""
        return sum(t.forward_bytes + t.backward_bytes for t in self.layers)


def predict(
    layers: Sequence[Layer],
    loads: Loads,
    constants: Constants,
    *,
    chunks: int = 1,
    simulated: int = SIMULATED,
) -> Prediction:
    """Predicts a step; up to `simulated` ranks it is simulated too, with messages in `chunks`."""
    stages = step_stages(layers, loads, constants)
    work = np.sum([s.before + s.beside + s.after for s in stages], axis=0)
    messages = np.sum([unhidden(s, loads, constants) for s in stages], axis=0)
    size, count = _sent(stages, loads)
    slowest = int(np.argmax(work + messages))
    found: float | None = None
    if loads.ranks <= simulated:
        found = simulation(stages, loads, constants, chunks).seconds
    return Prediction(
        loads.ranks,
        float((work + messages)[slowest]),
        found,
        float(work[slowest]),
        float(messages[slowest]),
        float(work.max() / work.mean()) if work.any() else 1.0,
        tuple(_layer_traffic(stages, i, loads) for i in range(len(layers))),
        float(size.max()),
        float(count.max()),
        float(memory(layers, loads, constants).max()),
    )


def sent(layers: Sequence[Layer], loads: Loads) -> tuple[Floats, Floats]:
    """Bytes and messages that each rank sends in a step; arrays as those of `loads`."""
    return _sent(step_stages(layers, loads, Constants()), loads)


def _sent(stages: Sequence[Stage], loads: Loads) -> tuple[Floats, Floats]:
    traffic = [s.traffic(loads) for s in stages]
    size = np.sum([t.sent_bytes for t in traffic], axis=0)
    return size, np.sum([t.sent_messages for t in traffic], axis=0)


def unhidden(stage: Stage, loads: Loads, constants: Constants) -> Floats:
    """Seconds of a stage's messages by rank, without those behind work on local edges."""
    t, c = stage.traffic(loads), constants
    out = t.sent_messages * c.alpha + t.sent_bytes / c.bandwidth
    back = t.received_messages * c.alpha + t.received_bytes / c.bandwidth
    messages = np.maximum(out, back)
    return messages - np.minimum(c.overlap * stage.beside, messages)


def simulation(
    stages: Sequence[Stage], loads: Loads, constants: Constants, chunks: int = 1
) -> simulate.Run:
    """The same stages in virtual time."""
    link = simulate.Link(constants.alpha, constants.bandwidth)
    played = [s.simulated(loads) for s in stages]
    return simulate.simulate(played, link, chunks=chunks, overlap=constants.overlap)


def _layer_traffic(stages: Sequence[Stage], layer: int, loads: Loads) -> LayerTraffic:
    found: dict[str, tuple[float, float]] = {FORWARD: (0.0, 0.0), BACKWARD: (0.0, 0.0)}
    for stage in stages:
        if stage.layer == layer and stage.direction != BOTH and stage.row_bytes:
            found[stage.direction] = loads.volume, loads.volume * sum(stage.row_bytes)
    return LayerTraffic(*found[FORWARD], *found[BACKWARD])


def memory(layers: Sequence[Layer], loads: Loads, constants: Constants) -> Floats:
    """Bytes of each rank: the process, edges, features, rows kept of each layer with their
    gradients, ghosts, and parameters with gradients and moments, of which an all-reduce holds those
    of all ranks."""
    numbers = loads.owned * layers[0].inputs
    for layer in layers:
        ghosts = sum(layer.forward_widths)
        numbers = numbers + 2 * loads.owned * layer.outputs + 2 * loads.ghosts * ghosts
        if not layer.product_first:  # the sums, for the gradient of the weight
            numbers = numbers + loads.owned * layer.inputs
    parameters = sum(layer.parameters for layer in layers)
    edges = constants.edge_bytes * (loads.local_edges + loads.remote_edges)
    return constants.fixed_bytes + edges + NUMBER_BYTES * (numbers + (4 + loads.ranks) * parameters)
