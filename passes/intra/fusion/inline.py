"""fuse-traversals, inline: a nest that only moves or combines numbers of its row disappears into
those who read it, where that repeats little work (producers.py): index and shape ops anywhere,
others where each row is read by one group (messages into sums, products of narrow rows too).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import root
from ....dialects.intra.rows import LoadOp, TraverseOp, nests
from ....dialects.intra.steps import Step, steps
from ...targets import Nests
from .producers import Producer, nest_of


class Inliner:
    """Dissolves nests of a function into those that read them, in rounds. `limits` are those of the
    target. What a step does is found once: `forget` is told of nests that have changed.
    """

    def __init__(self, func: FuncOp, limits: Nests) -> None:
        self.func = func
        self.limits = limits
        self.producers: dict[TraverseOp, Producer | None] = {}
        self.writes: dict[Step, set[SSAValue]] = {}

    def forget(self, changed: Iterable[TraverseOp]) -> None:
        """Find what these do anew."""
        for nest in changed:
            self.producers.pop(nest, None)
            self.writes.pop(nest, None)

    def producer(self, nest: TraverseOp) -> Producer | None:
        """`nest` as one that may be dissolved, if it is one."""
        if nest not in self.producers:
            self.producers[nest] = Producer.of(nest, self.limits)
        return self.producers[nest]

    def writers(self, order: list[Step]) -> defaultdict[SSAValue, list[int]]:
        """Where in `order` the steps stand that write a buffer."""
        found: defaultdict[SSAValue, list[int]] = defaultdict(list)
        for k, step in enumerate(order):
            if step not in self.writes:
                self.writes[step] = step.writes()
            for buffer in self.writes[step]:
                found[buffer].append(k)
        return found

    def round(self) -> set[TraverseOp]:
        """Dissolve each nest once into those that read it; the nests that have changed."""
        changed: set[TraverseOp] = set()
        order = steps(self.func)
        place = {step: k for k, step in enumerate(order)}
        written = self.writers(order)
        for nest in nests(self.func):
            producer = self.producer(nest)
            if producer is None or len(written[root(producer.store.buffer)]) > 1:
                continue
            for load in self.wanted(producer, place, written):
                changed.add(nest_of(load))
                self.forget([nest_of(load)])
                inline(producer, load)
        return changed

    def wanted(
        self, producer: Producer, place: dict[Step, int], written: dict[SSAValue, list[int]]
    ) -> list[LoadOp]:
        """The loads that make the row themselves from now on."""
        here = place[producer.nest]
        later = [k for b in producer.reads for k in written.get(b, ()) if k > here]
        until = min(later, default=len(place))
        uses = producer.store.buffer.uses
        loads = [use.operation for use in uses if use.operation is not producer.store]
        # a reader may stand behind a wait: what is dissolved is cheap and hides little of it
        found = [
            op
            for op in loads
            if isinstance(op, LoadOp)
            and here < place[nest_of(op)] <= until
            and producer.may_inline(op, len(loads))
        ]
        stored = len(found) < len(loads)
        return [] if stored and producer.joins_its_row else found


def inline(producer: Producer, load: LoadOp) -> None:
    """Compute the row where it was loaded."""
    value: dict[SSAValue, SSAValue] = {producer.nest.row: load.row}
    for op in producer.body:
        Rewriter.insert_op(op.clone(value), InsertPoint.before(load))
    Rewriter.replace_op(load, [], [value[producer.store.value]])
