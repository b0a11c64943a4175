"""Rows that other ranks read where they lie.

A phase *publishes* a buffer, and other ranks read its rows (`intra.peer_rows`), until it *retires*
it. That takes the place of a move where ranks see each other's memory: GPUs of one machine, threads
of one process.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, traits_def
from xdsl.utils.exceptions import VerifyException

from ..assembly import KNOWN, op_definition
from .bindings import INDEX32, IndexMapOp, PeerRowsOp, known_domain, root
from .steps import Step, steps_after
from .syntax import IntraOp, need


class PublicationOp(IntraOp, Step):
    """A step that begins or ends what `%to` shows of the `%from` of all ranks."""

    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    plan = prop_def(StringAttr)
    traits = traits_def()

    @property
    def may_move(self) -> bool:
        """As far as what it says it reads and writes allows."""
        return True

    def reads(self) -> set[SSAValue]:
        return {root(self.source)}

    def writes(self) -> set[SSAValue]:
        """The rows of others: they are there from one step on, and until the other."""
        return {self.target}

    def rows_of_others(self) -> PeerRowsOp:
        """What shows the rows. Raises VerifyException where it is something else."""
        op = self.target.owner
        if not isinstance(op, PeerRowsOp):
            raise VerifyException("what ranks read of each other is an intra.peer_rows")
        need(op.plan == self.plan, f"the rows are those of the plan {op.plan.data!r}")
        return op


@op_definition
class PublishOp(PublicationOp):
    """`intra.publish %from, %to through %owner {plan = "N_sent to N_ghost"}`: others may read the
    rows of `%from`, and `%to` are the rows of others.

    Goes on once all ranks have published theirs. Until `intra.retire` nobody writes `%from`. The
    rows that the plan sends are those of `%from` in order, or with `through` those that an
    `intra.index_map` of the plan's first set leads to, so that nothing is packed.
    """

    name = "intra.publish"
    through = opt_operand_def(INDEX32)
    assembly_format = f"$source `,` $target (`through` $through^)? {KNOWN} attr-dict"

    def verify_(self) -> None:
        self.rows_of_others()
        have, want = self.target.type, self.source.type
        need(have == want, f"the rows of others have the type of those here, {want}, not {have}")
        at = known_domain(self.source)
        need(
            at is not None and at[0] is not None,
            "what is published are the rows of a set: use intra.all_reduce for single rows",
        )
        table = None if self.through is None else self.through.owner
        need(
            table is None or isinstance(table, IndexMapOp),
            "rows are found through an intra.index_map of the set that the plan sends",
        )
        self.check_published(self.retire())

    def retire(self) -> RetireOp:
        """Where the publication ends. Raises VerifyException where it does not."""
        for step in steps_after(self):
            if isinstance(step, RetireOp) and step.target is self.target:
                return step
        raise VerifyException(f"the plan {self.plan.data!r} is published: add intra.retire")

    def check_published(self, retire: RetireOp) -> None:
        """Raises VerifyException where a step writes what is published before `retire`, or reads
        the rows of others outside of the publication."""
        need(root(retire.source) is root(self.source), "what is retired is not what is published")
        source = root(self.source)
        published = False
        assert self.parent is not None
        for step in self.parent.ops:
            if step is self:
                published = True
            elif step is retire:
                published = False
            elif isinstance(step, Step):
                need(
                    not published or source not in step.writes(),
                    f"{step.name} writes what others read: move it behind intra.retire",
                )
                need(
                    published or self.target not in step.reads() | step.writes(),
                    f"{step.name} reads rows of others that are not published there",
                )


@op_definition
class RetireOp(PublicationOp):
    """`intra.retire %from, %to {plan = "N_sent to N_ghost"}`: go on once no rank reads `%from` any
    more."""

    name = "intra.retire"
    assembly_format = f"$source `,` $target {KNOWN} attr-dict"

    def verify_(self) -> None:
        rows = self.rows_of_others().result
        begins = [u.operation for u in rows.uses if isinstance(u.operation, PublishOp)]
        need(bool(begins), f"the plan {self.plan.data!r} is not published: nothing is to retire")
        ends = [u.operation for u in rows.uses if isinstance(u.operation, RetireOp)]
        need(len(ends) == 1, f"the plan {self.plan.data!r} is retired twice")
