"""What any module must obey before verifiers of ops and passes may look around in it.

xDSL verifies an op after those inside it, so a verifier that asks its parent or its operands for
more may meet one that lacks what its class declares; and xDSL does not check the order of
definitions. Here each op has what its class declares before any verifier of an op runs, a function
is one block, every operand is defined above its use, and an attribute under the dialects' names is
one that they know (attributes.py).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from .assembly import FormattedOp
from .attributes import check_attributes


def verify_module(module: ModuleOp) -> None:
    """Raises VerifyException where the module, an op or a type is wrong."""
    for op in module.walk():
        if isinstance(op, IRDLOperation):
            _has_what_it_declares(op)
        if isinstance(op, FuncOp):
            _is_function_of_module(op, module)
    _defined_above(module, set())
    check_attributes(module)
    for op in module.walk(region_first=True):
        _verify_further(op)


def _has_what_it_declares(op: IRDLOperation) -> None:
    try:
        op.get_irdl_definition().verify(op)
    except VerifyException as error:
        op.emit_error(f"Operation does not verify: {error}", error)


def _verify_further(op: Operation) -> None:
    """What xDSL's `verify` asks of an op, but for what is known here: that it has what its class
    declares."""
    if not isinstance(op, FormattedOp):
        op.verify(verify_nested_ops=False)
        return
    parent = op.parent_op()
    if parent is not None and op.next_op is None and not parent.has_trait(NoTerminator):
        if not op.has_trait(IsTerminator):
            raise VerifyException(
                f"{op.name} is the last op of a block of {parent.name}, which ends in a terminator"
            )
    try:
        op.verify_further()
    except VerifyException as error:
        op.emit_error(f"Operation does not verify: {error}", error)


def _is_function_of_module(op: FuncOp, module: ModuleOp) -> None:
    if op.parent_op() is not module:
        raise VerifyException(
            f"@{op.sym_name.data} stands inside another op: functions do not nest"
        )
    if len(op.body.blocks) > 1:
        raise VerifyException(
            f"@{op.sym_name.data} has {len(op.body.blocks)} blocks: a function is one block, "
            "without branches"
        )


def _defined_above(op: Operation, known: set[SSAValue]) -> None:
    """Checks the ops inside `op`; from there the values in `known` can be seen, which is left as it
    was."""
    for region in op.regions:
        for block in region.blocks:
            here = [*block.args, *(r for inner in block.ops for r in inner.results)]
            _defined_above_in(block, known)
            known.difference_update(here)


def _defined_above_in(block: Block, known: set[SSAValue]) -> None:
    known.update(block.args)
    for op in block.ops:
        for i, x in enumerate(op.operands):
            if x not in known:
                name = f"%{x.name_hint}" if x.name_hint else f"operand {i}"
                message = f"{name} of {op.name} is used before its definition"
                op.emit_error(message, VerifyException(message))
        if op.regions:
            _defined_above(op, known)
        known.update(op.results)
