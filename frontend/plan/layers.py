"""What the layers of a model compute and what crosses between ranks, by their widths.

Which of a product and an aggregation stands first, and whether the aggregation of features that
stay is done once for all steps, is what the compiler would choose: asked are the costs of
reorder-linear, for the sizes that it would take the graph to have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ...passes.analysis.costs import DEGREE, FEW, NODES, STEP
from ...passes.analysis.seconds import line_bytes
from ...passes.inter.linear.aggregation import HOISTED, MARGIN
from ...passes.inter.linear.order_costs import OrderCosts
from ...passes.targets.openmp import OPENMP

KINDS = ("gcn", "sage", "gin", "gat")
HEADS = 8
"""Of the inner layers of a GAT; the last has one."""
NUMBER_BYTES = 4
STAYING = 1 << 18
"""Numbers of features below which none is kept from step to step."""


@dataclass(frozen=True)
class Layer:
    """One layer.

    Attributes:
        kind: one of `KINDS`.
        inputs, outputs: numbers of a node before and after it.
        learnt_inputs: its inputs have a gradient: all layers but the first.
        product_first: the product with the weight stands before the aggregation.
        once: the aggregation is done once for all steps.
        heads: of attention, 0 for other layers.
    """

    kind: str
    inputs: int
    outputs: int
    learnt_inputs: bool
    product_first: bool
    once: bool
    heads: int = 0

    @property
    def width(self) -> int:
        """Numbers of a row that is aggregated."""
        return self.outputs if self.product_first else self.inputs

    @property
    def forward_widths(self) -> tuple[int, ...]:
        """Numbers of a row in each message of the forward half between two ranks."""
        return () if self.once else (self.width,)

    @property
    def read_widths(self) -> tuple[int, ...]:
        """Numbers of the rows that an edge reads in the forward half: in attention the scores of a
        node, which follow from its row, are stored beside it."""
        return (self.heads, self.width) if self.heads else (self.width,)

    @property
    def read_back_widths(self) -> tuple[int, ...]:
        """The same of the backward half: weights of attention have gradients, which are made of a
        score, a maximum, a sum and a gradient of the node at the other end."""
        return (4 * self.heads, self.width) if self.heads else self.read_widths

    @property
    def backward_widths(self) -> tuple[int, ...]:
        """The same of the backward half: features have no gradient to bring back."""
        return self.forward_widths if self.product_first or self.learnt_inputs else ()

    @property
    def parameters(self) -> int:
        """Numbers of its weights and biases."""
        a, b = self.inputs, self.outputs
        return {
            "gcn": a * b + b,
            "sage": 2 * a * b + b,
            "gin": a * b + b + b * b + b,
            "gat": a * b + 3 * b,
        }[self.kind]

    @property
    def product(self) -> int:
        """Multiplications and additions for a node in the forward half, of whole vectors."""
        a, b = self.inputs, self.outputs
        inner = b * lanes(b) if self.kind == "gin" else 0
        scores = 2 * b if self.heads else 0
        return self._factors * a * lanes(b) + inner + scores

    @property
    def product_back(self) -> int:
        """The same of the backward half: gradients of weights, and those of what they multiply."""
        a, b = self.inputs, self.outputs
        inner = b * lanes(b) if self.kind == "gin" else 0
        learnt = self._factors * b * lanes(a) + 2 * b * bool(self.heads)
        return self.product + inner + (learnt if self.learnt_inputs else 0)

    @property
    def forward_numbers(self) -> int:
        """Numbers of a node that the forward half reads or writes in order: what products read, and
        what they write."""
        inner = 2 * self.outputs if self.kind == "gin" else 0  # is written, then read
        return self._rows_read * self.inputs + self.outputs + inner + self._of_attention

    @property
    def backward_numbers(self) -> int:
        """The same of the backward half: what the gradients of weights are made of, and gradients
        of inputs where they have one. Those of an inner product read its inputs, and write a
        gradient, of which those of the outer one are made, where its inputs are not 0."""
        inner = 4 * self.outputs if self.kind == "gin" else 0
        learnt = self.inputs if self.learnt_inputs else 0
        return self._rows_read * self.inputs + self.outputs + learnt + inner + self._of_attention

    @property
    def forward_ghost_numbers(self) -> int:
        """Numbers of a ghost that the forward half reads or writes in order, beside what arrives:
        attention makes scores of its row, as of a rank's own."""
        return self.outputs + self.heads if self.heads else 0

    @property
    def backward_ghost_numbers(self) -> int:
        """The same of the backward half: the row, its gradient and the scores."""
        return 2 * self.outputs + self.heads if self.heads else 0

    @property
    def _factors(self) -> int:
        """Rows of inputs that are multiplied for a row of outputs: of a node and of its sum."""
        return 2 if self.kind == "sage" else 1

    @property
    def _of_attention(self) -> int:
        """Numbers of a node that attention writes for its backward half, which reads them: sums of
        rows by their weights and by the slopes of these, what becomes of them, and for each head
        scores of both ends, a maximum, a sum, its reciprocal and a sum of slopes."""
        return 4 * self.outputs + 6 * self.heads if self.heads else 0

    @property
    def _rows_read(self) -> int:
        """Rows of inputs that are read in order for these: of a GIN a node and its sum are added
        up, which are two where the sum is kept."""
        return 2 if self.kind == "gin" and self.once else self._factors


def lanes(width: int) -> int:
    """Numbers of so many whole vectors as have `width`."""
    lane = OPENMP.vector_bytes // NUMBER_BYTES
    return -(-width // lane) * lane


def lines(width: int) -> float:
    """Numbers that are read with a row of so many: whole cache lines."""
    return line_bytes(width * NUMBER_BYTES, OPENMP.caches.line) / NUMBER_BYTES


def model(kind: str, widths: Sequence[int], nodes: float, edges: float) -> tuple[Layer, ...]:
    """The layers of a model with `widths` numbers before, between and after them, on a graph of
    such sizes, when it trains.

    Raises:
        ValueError: a kind that is not known, fewer than two widths, one that is not positive, or
            one that the heads of a GAT cannot share.
    """
    if kind not in KINDS:
        raise ValueError(f"model: there is no {kind!r}, only {', '.join(KINDS)}")
    if len(widths) < 2 or min(widths) < 1:
        raise ValueError(f"widths: {list(widths)}, and there should be at least two, of 1 or more")
    pairs = list(pairwise(widths))
    made = (_layer(kind, i, len(pairs), a, b, nodes, edges) for i, (a, b) in enumerate(pairs))
    return tuple(made)


def _layer(
    kind: str, place: int, count: int, inputs: int, outputs: int, nodes: float, edges: float
) -> Layer:
    learnt = place > 0
    if kind == "gat":
        heads = 1 if place == count - 1 else HEADS
        if outputs % heads:
            raise ValueError(f"hidden: {heads} heads cannot share {outputs} numbers evenly")
        return Layer(kind, inputs, outputs, learnt, True, False, heads)
    costs = _costs(kind, inputs, outputs, learnt, nodes, edges)
    stays = not learnt and nodes * inputs >= STAYING
    hoisted = replace(costs, hoisted=True, beside=kind != "gcn")
    if stays and hoisted.last() < HOISTED * min(costs.first(), costs.last()):
        return Layer(kind, inputs, outputs, learnt, False, True)
    if kind == "gcn":  # is written with the product first, the others with it last
        first = not costs.last() < MARGIN * costs.first()
    else:
        first = costs.first() < MARGIN * costs.last()
    return Layer(kind, inputs, outputs, learnt, first, False)


def _costs(
    kind: str, inputs: int, outputs: int, learnt: bool, nodes: float, edges: float
) -> OrderCosts:
    per_node = DEGREE
    if edges and nodes:
        per_node *= STEP ** round(math.log(edges / nodes / DEGREE, STEP))
    read = NODES * (per_node + (kind == "gcn"))  # with a loop for each node
    return OrderCosts(
        OPENMP,
        n=read if FEW * read <= NODES else NODES,
        m=NODES,
        edges=read,
        k=inputs,
        f=outputs,
        number_bytes=NUMBER_BYTES,
        stored=not learnt,
        training=True,
        root_grad=learnt,
    )
