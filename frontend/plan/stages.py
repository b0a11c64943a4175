"""A step of training as stages: what each rank computes before, beside and after the messages of
each exchange, in the order of the compiled program.

The loss begins with an all-reduce that makes sure of one program, and ends with one of gradients;
between them each layer exchanges rows once forward and once backward, or not at all. Forward,
rows are packed, ghosts are received and copied to where remote edges read them last. Backward, the
gradients of ghosts are computed first, of remote edges, and go back to the owners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import simulate
from .constants import Constants
from .layers import NUMBER_BYTES, Layer, lines
from .loads import Floats, Loads

CALL_BYTES = 56
"""Of the all-reduce that a call begins with: seven integers."""
LOSS_NUMBERS = 4
"""Numbers that the loss and its gradient read or write for a class of a node."""
OPTIMIZER_NUMBERS = 7
"""Numbers that Adam reads or writes for a parameter."""
BOTH, FORWARD, BACKWARD = "all-reduce", "forward", "backward"


@dataclass(frozen=True)
class Traffic:
    """What each rank sends and receives in a stage; arrays as those of `Loads`."""

    sent_bytes: Floats
    sent_messages: Floats
    received_bytes: Floats
    received_messages: Floats


@dataclass(frozen=True)
class Stage:
    """A stage of all ranks. `direction` says who sends: owners of ghosts forward, their readers
    backward, and everyone in an all-reduce; `layer` is None there.

    Attributes:
        before, beside, after: seconds, as `simulate.Stage` has them; arrays as those of `Loads`.
        row_bytes: of each message between two ranks that exchange anything.
    """

    direction: str
    layer: int | None
    before: Floats
    beside: Floats
    after: Floats
    row_bytes: tuple[float, ...]

    def traffic(self, loads: Loads) -> Traffic:
        """Bytes and messages by rank."""
        size, count = sum(self.row_bytes), len(self.row_bytes)
        if self.direction == BOTH:
            others = np.full(len(loads.owned), float(loads.ranks - 1))
            return Traffic(others * size, others * count, others * size, others * count)
        rows, peers = (loads.sent, loads.ghosts), (loads.readers, loads.owners)
        if self.direction == BACKWARD:
            rows, peers = rows[::-1], peers[::-1]
        return Traffic(rows[0] * size, peers[0] * count, rows[1] * size, peers[1] * count)

    def simulated(self, loads: Loads) -> simulate.Stage:
        """As the simulation takes it: a number for each rank."""

        def each(work: Floats) -> Floats:
            return np.broadcast_to(work, loads.ranks)

        work = each(self.before), each(self.beside), each(self.after)
        return simulate.Stage(work[0], work[1], work[2], self._rows(loads), self.row_bytes)

    def _rows(self, loads: Loads) -> Floats | None:
        if not self.row_bytes or loads.ranks == 1:
            return None
        if self.direction == BOTH:
            return 1 - np.eye(loads.ranks)
        rows = loads.matrix()
        return rows if self.direction == FORWARD else rows.T


def step_stages(layers: Sequence[Layer], loads: Loads, constants: Constants) -> list[Stage]:
    """The stages of a step, work in seconds as it is where all cores work."""
    work = _Work(loads, constants)
    nothing = np.zeros(len(loads.owned))
    first = nothing + constants.fixed
    stages = [Stage(BOTH, None, first, nothing, nothing, (CALL_BYTES,))]
    stages += [work.forward(i, layer) for i, layer in enumerate(layers)]
    loss = work.nodes(LOSS_NUMBERS * layers[-1].outputs)
    for i, layer in reversed(list(enumerate(layers))):
        stages.append(work.backward(i, layer, loss))
        loss = nothing
    parameters = sum(layer.parameters for layer in layers)
    update = nothing + work.constants.node_number * OPTIMIZER_NUMBERS * parameters
    reduced = (NUMBER_BYTES * (parameters + 1.0),)  # with the loss
    stages.append(Stage(BOTH, None, nothing, nothing, update, reduced))
    if loads.ranks == 1:
        return stages
    return [replace(s, before=s.before + constants.exchange * bool(s.row_bytes)) for s in stages]


def row_seconds(
    rows: Floats | float, widths: Sequence[int], constants: Constants
) -> Floats | float:
    """Seconds to read, anywhere among so many rows, one of each width, and its place. What is read
    together shares the caches."""
    table = NUMBER_BYTES * sum(widths) * rows
    numbers = sum(map(lines, widths))
    return len(widths) * constants.edge_number + numbers * constants.gathered(table)


class _Work:
    """Seconds of work by rank."""

    def __init__(self, loads: Loads, constants: Constants) -> None:
        self.loads, self.constants = loads, constants.among(loads.ranks)

    def nodes(self, numbers: float, products: float = 0.0) -> Floats:
        """So many numbers and products for each node of a rank."""
        of_node = numbers * self.constants.node_number + products * self.constants.multiply_add
        return of_node * self.loads.owned

    def ghosts(self, numbers: float) -> Floats:
        """So many numbers for each ghost of a rank, each in one product at most."""
        of_ghost = numbers * (self.constants.node_number + self.constants.multiply_add)
        return of_ghost * self.loads.ghosts

    def edges(self, count: Floats, layer: Layer, widths: Sequence[int], scores: int) -> Floats:
        """The aggregation of so many edges, which read rows of these widths, with the weights of
        attention computed so often."""
        scored = scores * layer.heads * self.constants.score
        return self.rows(count, widths) + count * scored

    def rows(self, count: Floats, widths: Sequence[int]) -> Floats:
        """Rows that are read, written or added to anywhere among those of a rank."""
        of_row = row_seconds(self.loads.owned + self.loads.ghosts, widths, self.constants)
        return count * of_row

    def copied(self, count: Floats, widths: Sequence[int], times: int) -> Floats:
        """Rows that are so often read or written in order."""
        return times * sum(widths) * self.constants.node_number * count

    def forward(self, place: int, layer: Layer) -> Stage:
        loads, widths = self.loads, layer.forward_widths
        on_nodes = self.nodes(layer.forward_numbers, layer.product)
        nothing = np.zeros(len(loads.owned))
        if not widths:
            return Stage(FORWARD, place, nothing, on_nodes, nothing, ())
        packing = self.rows(loads.sent, widths) + self.copied(loads.sent, widths, 1)
        unpacking = self.copied(loads.ghosts, widths, 2)
        unpacking = unpacking + self.ghosts(layer.forward_ghost_numbers)
        local = self.edges(self._local(layer), layer, layer.read_widths, 1)
        remote = self.edges(loads.remote_edges, layer, layer.read_widths, 1)
        sizes = tuple(float(NUMBER_BYTES * w) for w in widths)
        if layer.product_first:
            return Stage(FORWARD, place, packing + on_nodes, local, unpacking + remote, sizes)
        return Stage(FORWARD, place, packing, local, unpacking + remote + on_nodes, sizes)

    def backward(self, place: int, layer: Layer, before: Floats) -> Stage:
        """`before` is work that its gradients need first."""
        loads, widths = self.loads, layer.backward_widths
        on_nodes = self.nodes(layer.backward_numbers, layer.product_back)
        nothing = np.zeros(len(loads.owned))
        if not widths:
            return Stage(BACKWARD, place, before, on_nodes, nothing, ())
        adding = self.rows(loads.sent, widths) + self.copied(loads.sent, widths, 1)
        local = self.edges(self._local(layer), layer, layer.read_back_widths, 2)
        remote = self.edges(loads.remote_edges, layer, layer.read_back_widths, 2)
        remote = remote + self.copied(loads.ghosts, widths, 1)
        remote = remote + self.ghosts(layer.backward_ghost_numbers)
        sizes = tuple(float(NUMBER_BYTES * w) for w in reversed(widths))
        if layer.product_first:
            return Stage(BACKWARD, place, before + remote, local, adding + on_nodes, sizes)
        return Stage(BACKWARD, place, before + on_nodes + remote, local, adding, sizes)

    def _local(self, layer: Layer) -> Floats:
        """Local edges, with the loops that a layer adds."""
        loops = layer.kind in ("gcn", "gat")
        return self.loads.local_edges + (self.loads.owned if loops else 0.0)
