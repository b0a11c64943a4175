"""Memory that other ranks read where it lies.

A phase *publishes* a buffer, and other ranks read it until it *retires* it. That takes the place of
a message where ranks see each other's memory: GPUs of one machine, threads of one process. What is
published are rows that others ask for (`intra.peer_rows`), in the place of a move, or whole buffers
that all ranks have, in the place of a reduction over ranks (`intra.peer_totals`).
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import ClassVar

from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, traits_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from ..assembly import KNOWN, op_definition
from .bindings import INDEX32, IndexMapOp, known_domain, root
from .peers import PeerRowsOp, PeerTotalsOp
from .steps import Step, steps_after
from .syntax import IntraOp, need


class PublicationOp(IntraOp, Step):
    """A step that begins or ends what ranks show each other."""

    traits = traits_def()

    @abc.abstractmethod
    def shown(self) -> Mapping[SSAValue, SSAValue]:
        """By what a phase sees of all ranks, the buffer that it shows of its own. Raises
        VerifyException where that is something else."""

    @abc.abstractmethod
    def subject(self) -> str:
        """What is published, as messages say it."""

    @property
    def may_move(self) -> bool:
        """As far as what it says it reads and writes allows."""
        return True

    def reads(self) -> set[SSAValue]:
        return {root(buffer) for buffer in self.shown().values()}

    def writes(self) -> set[SSAValue]:
        """What is seen of others: it is there from one step on, and until the other."""
        return set(self.shown())


class BeginOp(PublicationOp):
    """One that begins it."""

    END: ClassVar[type[PublicationOp]]

    def end(self) -> PublicationOp:
        """Where the publication ends. Raises VerifyException where it does not."""
        for step in steps_after(self):
            if isinstance(step, self.END) and step.shown().keys() == self.shown().keys():
                return step
        raise VerifyException(f"{self.subject()} is published: add {self.END.name}")

    def check_published(self) -> None:
        """Raises VerifyException where a step writes what is published before the end, or reads
        what is seen of others outside of the publication."""
        end, here = self.end(), self.shown()
        sources = self.reads()
        need(end.reads() == sources, "what is retired is not what is published")
        published = False
        assert self.parent is not None
        for step in self.parent.ops:
            if step is self:
                published = True
            elif step is end:
                published = False
            elif isinstance(step, Step):
                need(
                    not published or sources.isdisjoint(step.writes()),
                    f"{step.name} writes what others read: move it behind {end.name}",
                )
                need(
                    published or here.keys().isdisjoint(step.reads() | step.writes()),
                    f"{step.name} reads rows of others that are not published there",
                )


class EndOp(PublicationOp):
    """One that ends it."""

    def check_ends(self, begin: type[BeginOp]) -> None:
        """Raises VerifyException where nothing begins that ends here, or it ends elsewhere too."""
        for seen in self.shown():
            users = [use.operation for use in seen.uses]
            begins = any(isinstance(op, begin) for op in users)
            need(begins, f"{self.subject()} is not published: nothing is to retire")
            ends = sum(isinstance(op, type(self)) for op in users)
            need(ends == 1, f"{self.subject()} is retired twice")


# ---------------------------------------------------------------- rows of a plan


class RowsOp(PublicationOp):
    """Of rows that a plan sends: `%to` shows the `%from` of all ranks."""

    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    plan = prop_def(StringAttr)

    def shown(self) -> Mapping[SSAValue, SSAValue]:
        op = self.target.owner
        if not isinstance(op, PeerRowsOp):
            raise VerifyException("what ranks read of each other is an intra.peer_rows")
        need(op.plan == self.plan, f"the rows are those of the plan {op.plan.data!r}")
        return {self.target: self.source}

    def subject(self) -> str:
        return f"the plan {self.plan.data!r}"


@op_definition
class RetireOp(RowsOp, EndOp):
    """`intra.retire %from, %to {plan = "N_sent to N_ghost"}`: go on once no rank reads `%from` any
    more."""

    name = "intra.retire"
    assembly_format = f"$source `,` $target {KNOWN} attr-dict"

    def verify_(self) -> None:
        self.check_ends(PublishOp)


@op_definition
class PublishOp(RowsOp, BeginOp):
    """`intra.publish %from, %to through %owner {plan = "N_sent to N_ghost"}`: others may read the
    rows of `%from`, and `%to` are the rows of others.

    Goes on once all ranks have published theirs. Until `intra.retire` nobody writes `%from`. The
    rows that the plan sends are those of `%from` in order, or with `through` those that an
    `intra.index_map` of the plan's first set leads to, so that nothing is packed.
    """

    name = "intra.publish"
    END: ClassVar[type[PublicationOp]] = RetireOp
    through = opt_operand_def(INDEX32)
    assembly_format = f"$source `,` $target (`through` $through^)? {KNOWN} attr-dict"

    def verify_(self) -> None:
        self.shown()
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
        self.check_published()


# ---------------------------------------------------------------- buffers that all ranks have


class BuffersOp(PublicationOp):
    """Of whole buffers, each of which has as many rows on all ranks."""

    totals = var_operand_def(MemRefType)

    def shown(self) -> Mapping[SSAValue, SSAValue]:
        found: dict[SSAValue, SSAValue] = {}
        for seen in self.totals:
            op = seen.owner
            if not isinstance(op, PeerTotalsOp):
                raise VerifyException("what ranks add up of each other is an intra.peer_totals")
            found[seen] = op.buffer
        return found

    def subject(self) -> str:
        return "what totals are made of"


@op_definition
class RetireAllOp(BuffersOp, EndOp):
    """`intra.retire_all %s, %t`: go on once no rank reads any more what the totals are made of."""

    name = "intra.retire_all"
    assembly_format = f"$totals {KNOWN} attr-dict"

    def verify_(self) -> None:
        self.check_ends(PublishAllOp)


@op_definition
class PublishAllOp(BuffersOp, BeginOp):
    """`intra.publish_all %s, %t`: others may read the buffers that these totals are made of, and
    the totals are those over all ranks.

    Goes on once all ranks have published theirs: several buffers are one publication. Until
    `intra.retire_all` nobody writes them, so totals are stored elsewhere.
    """

    name = "intra.publish_all"
    END: ClassVar[type[PublicationOp]] = RetireAllOp
    assembly_format = f"$totals {KNOWN} attr-dict"

    def verify_(self) -> None:
        need(bool(self.totals), "name the totals that are made")
        need(len(self.reads()) == len(self.totals), "a buffer is published twice: drop one")
        self.check_published()
