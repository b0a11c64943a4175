"""infer-domains: compact materialization (Hector, ASPLOS 2024) as the inference of least domains.

A value per edge that is the same for all edges of one (relation, source) pair is computed and
stored once per pair: its domain is the join of its operands'. The importer types every value on the
whole set; here each moves to its least domain. Not where that has rows which nothing reads, and
these would be multiplied with single numbers that may be infinite: a sum over no rows, inverted.
"""

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from ...dialects.inter.base import ValueOp
from ...dialects.signature import is_returned
from ..analysis.value_facts import Facts
from ..function_pass import FunctionPass
from .verify_sets import verify_sets


def infer_domains(func: FuncOp) -> int:
    """Moves every value of `func` to its least domain; returns how many moved. Values that are
    returned keep their type, which belongs to the caller. Linear in ops."""
    env = verify_sets(func)
    facts = Facts()
    moved = 0
    for op in func.body.block.ops:
        if not isinstance(op, ValueOp) or is_returned(op.results[0]):
            continue
        least = op.infer(env)
        if least != op.type.dom and (facts.finite_units(op) or env.all_are_read(least)):
            Rewriter.replace_value_with_new_type(op.results[0], op.type.on(least))
            moved += 1
    return moved


@dataclass(frozen=True)
class InferDomainsPass(FunctionPass):
    """Stores every value once per key that it depends on (compact materialization)."""

    name = "infer-domains"

    def on(self, func: FuncOp) -> None:
        infer_domains(func)
