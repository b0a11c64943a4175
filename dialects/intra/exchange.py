"""Steps that exchange rows with other ranks: a move, from its start to its wait, and sums over all
ranks.

A phase is the program of one rank. A *plan* says which rows go where; it belongs to the partition,
and the phase knows its name. Whoever runs the phase carries the messages
(runtime/carrier.py).
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, traits_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from ..assembly import KNOWN, op_definition
from .bindings import known_domain, need_reducible, root
from .memory import need_writable
from .steps import Step, steps_after
from .syntax import IntraOp, need


@op_definition
class MoveStartOp(IntraOp, Step):
    """`intra.move_start %from, %to {plan = "name"}`: send rows to others, and let theirs arrive.

    `%from` holds the rows that are sent, in the order of those who read them; in `%to` those of
    others arrive, in the order of their owners. Until the wait `%from` stays as it is and nobody
    touches `%to`, which no other step writes. Nests of other buffers run meanwhile.
    """

    name = "intra.move_start"
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    plan = prop_def(StringAttr)
    traits = traits_def()
    assembly_format = f"$source `,` $target {KNOWN} attr-dict"

    @property
    def may_move(self) -> bool:
        """What does not write `%from` may as well be done in flight."""
        return True

    def reads(self) -> set[SSAValue]:
        return {root(self.source)}

    def writes(self) -> set[SSAValue]:
        return {root(self.target)}

    def verify_(self) -> None:
        have, want = self.target.type, self.source.type
        need(have == want, f"what arrives has the type of what is sent, {want}, not {have}")
        need_writable(self.target)
        for buffer in (self.source, self.target):
            at = known_domain(buffer)
            need(
                at is not None and at[0] is not None,
                "a move is between the rows of sets: use intra.all_reduce for single rows",
            )
        need(root(self.source) is not root(self.target), "a move needs two buffers")
        self.check_flight(self.wait())

    def wait(self) -> MoveWaitOp:
        """Where the move ends. Raises VerifyException where it does not, or is not its plan's only
        one until then."""
        name = self.plan.data
        for step in steps_after(self):
            if isinstance(step, MoveWaitOp) and step.plan == self.plan:
                return step
            need(
                not isinstance(step, MoveStartOp) or step.plan != self.plan,
                f"the plan {name!r} is under way already: await it first",
            )
        raise VerifyException(f"the plan {name!r} is started and not awaited: add intra.move_wait")

    def check_flight(self, wait: MoveWaitOp) -> None:
        """Raises VerifyException where a step writes what is sent before `wait`, reads what arrives
        before it, or writes that at all."""
        need(wait.target is self.target, "what is awaited is another buffer than arrives")
        source, target = root(self.source), root(self.target)
        assert self.parent is not None
        state = "before"
        for step in self.parent.ops:
            if step is self:
                state = "in flight"
            elif step is wait:
                state = "after"
            elif isinstance(step, Step):
                reads, writes = step.reads(), step.writes()
                need(
                    state != "in flight" or source not in writes,
                    f"{step.name} writes what is being sent: move it behind intra.move_wait",
                )
                need(
                    target not in writes,
                    f"{step.name} writes where rows of others arrive: give the move a buffer of "
                    "its own",
                )
                need(
                    state == "after" or target not in reads,
                    f"{step.name} reads rows before they have arrived: move it behind "
                    "intra.move_wait",
                )


@op_definition
class MoveWaitOp(IntraOp, Step):
    """`intra.move_wait %to {plan = "name"}`: go on once the rows of others are there and one's own
    have been read. What waits stays behind it: done with what is computed in flight, that would
    wait too.
    """

    name = "intra.move_wait"
    target = operand_def(MemRefType)
    plan = prop_def(StringAttr)
    traits = traits_def()
    assembly_format = f"$target {KNOWN} attr-dict"

    @property
    def may_move(self) -> bool:
        return False

    @property
    def start(self) -> MoveStartOp:
        """Where the move begins. Raises VerifyException where it does not."""
        op = self.prev_op
        while op is not None:
            if isinstance(op, MoveStartOp | MoveWaitOp) and op.plan == self.plan:
                break
            op = op.prev_op
        if not isinstance(op, MoveStartOp):
            raise VerifyException(f"the plan {self.plan.data!r} is not under way: start it first")
        return op

    def reads(self) -> set[SSAValue]:
        return self.start.reads()

    def writes(self) -> set[SSAValue]:
        return self.start.writes()

    def verify_(self) -> None:
        self.start.wait()


@op_definition
class AllReduceOp(IntraOp, Step):
    """`intra.all_reduce %a, %b {kind = "sum"}`: each number becomes the sum (max, min, mul) over
    all ranks of what stands in its place. All ranks have as many rows of a buffer. Several buffers
    are one message.
    """

    name = "intra.all_reduce"
    buffers = var_operand_def(MemRefType)
    kind = prop_def(StringAttr)
    traits = traits_def()
    assembly_format = f"$buffers {KNOWN} attr-dict"

    @property
    def may_move(self) -> bool:
        """Before and after it the same buffer holds other numbers."""
        return False

    def reads(self) -> set[SSAValue]:
        return {root(b) for b in self.buffers}

    def writes(self) -> set[SSAValue]:
        return self.reads()

    def verify_(self) -> None:
        need(bool(self.buffers), "name the buffers that are reduced")
        need(len(self.reads()) == len(self.buffers), "a buffer is named twice: drop one")
        for b in self.buffers:
            need_reducible(self.kind.data, b)
            need_writable(b)
