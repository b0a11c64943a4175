"""A dialect with another kind of steps: an exchange that goes on from its start to its wait, while
nests run. It gives each row of the one buffer, negated, to the other."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.interpreter import PythonValues, impl, register_impls
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.rewriter import InsertPoint, Rewriter

from gnnc.dialects.assembly import KNOWN, op_definition
from gnnc.dialects.intra.bindings import root
from gnnc.dialects.intra.loops import TraverseOp
from gnnc.dialects.intra.steps import Step
from gnnc.dialects.intra.syntax import IntraOp
from gnnc.dialects.meaning.intra import IntraFunctions, poison


class ExchangeOp(IntraOp, Step):
    """Either end of an exchange."""

    traits = traits_def()

    @property
    def may_move(self) -> bool:
        return False


@op_definition
class StartOp(ExchangeOp):
    """From here on `source` is read and `target` written."""

    name = "exchange.start"
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    token = result_def(IndexType)
    assembly_format = f"$source `,` $target {KNOWN} attr-dict `:` type($token)"

    def reads(self) -> set[SSAValue]:
        return {root(self.source)}

    def writes(self) -> set[SSAValue]:
        return {root(self.target)}


@op_definition
class WaitOp(ExchangeOp):
    """Until here."""

    name = "exchange.wait"
    token = operand_def(IndexType)
    assembly_format = f"$token {KNOWN} attr-dict"

    @property
    def start(self) -> StartOp:
        """Where the exchange began."""
        assert isinstance(self.token.owner, StartOp)
        return self.token.owner

    def reads(self) -> set[SSAValue]:
        return self.start.reads()

    def writes(self) -> set[SSAValue]:
        return self.start.writes()


class ExchangeFunctions(IntraFunctions):
    """The exchange happens as late as it may, and spoils its target before."""

    @impl(StartOp)
    def run_start(self, interp: Any, op: StartOp, args: Any) -> PythonValues:
        self.memory.reuse(op)
        poison(args[1])
        return (args,)

    @impl(WaitOp)
    def run_wait(self, interp: Any, op: WaitOp, args: Any) -> PythonValues:
        (source, target) = args[0]
        target[...] = -source
        return ()


register_impls(ExchangeFunctions)


def exchange(nest: TraverseOp, until: Step) -> None:
    """An exchange in the place of a nest that negates the rows of a buffer, awaited before
    `until`."""
    (source,), (target,) = nest.reads(), nest.writes()
    start = StartOp.build(operands=[source, target], result_types=[IndexType()])
    Rewriter.insert_op(start, InsertPoint.before(nest))
    Rewriter.insert_op(WaitOp.build(operands=[start.token]), InsertPoint.before(until))
    nest.detach()
    nest.erase()
