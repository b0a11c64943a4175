"""What the compiler hangs on functions, their arguments and results, and on ops: the name of each
attribute, where it stands and what it holds. A module with any other under the dialects' names does
not verify (`check_attributes`), so a misspelt one is no silent nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

NAME = "inter.name"
"""What the caller calls an argument or a result; else it is what the text calls it."""
NEEDS_GRAD = "inter.needs_grad"
"""An argument whose gradient is wanted (autodiff)."""
COTANGENT = "inter.cotangent"
"""An argument that is the cotangent of a result, with that one's name (autodiff adds it)."""
CONSTANT = "inter.constant"
"""An argument that is the same in every call on a graph."""
OPTIMIZER = "inter.optimizer"
"""The rule that updates an argument (passes/inter/optimizers.py)."""
STATE_OF = "inter.state_of"
"""An argument that belongs to the update of the argument of this name. What the rule keeps comes
first, in its order, then the numbers of the step."""
SUM_OF = "inter.sum_of"
"""An argument with the sum of earlier gradients of the argument of this name, to which that of this
call is added; a step of an optimizer takes the sum, without one it is kept."""
CLIP = "inter.clip"
"""An argument with the bounds by which the gradients that optimizers take are clipped: the ways, in
their order (passes/inter/gradient_clipping.py)."""

GLOBAL_ROWS = "inter.global_rows"
"""An argument with the number that each row of its set has in the whole graph (global-rows)."""
GLOBAL_COUNT = "inter.global_count"
"""An argument with the number of rows in the whole graph: [set], or of each group [set, maps ..]
(global-rows)."""

UPDATE = "inter.update"
"""A result that is the new value of the argument of this name."""
GRAD = "inter.grad"
"""A result that is the gradient of the argument of this name."""
DETACHED = "inter.detached"
"""A result that nobody differentiates: it has no cotangent."""
SAVED = "inter.saved"
"""A result that a later phase reads, and no caller (split-phases)."""

PREPARE = "inter.prepare"
"""An op that is computed once per graph, in @prepare (hoist-invariants)."""
SAVE = "inter.save"
"""An op that only the backward half uses: computed in the forward, and stored (plan-saves)."""
RECOMPUTE = "inter.recompute"
"""A second copy of an op, which the backward half computes for itself (plan-saves)."""

KEPT = "inter.kept"
"""A choice between rows of a value and zeros: what share of the rows it is expected to keep
(restrict-rows)."""

STATS = "inter.stats"
"""The sizes that a function expects: sets, and pairs of maps of one, by name."""
SEEDED = "inter.seeded"
"""A function whose gradients are scaled by the cotangent at their end (seed-loss)."""
UPDATED = "inter.updated"
"""A function whose gradients are used up by updates of parameters (update-parameters)."""
SUMMED = "inter.summed"
"""A function that each rank calls on a batch of its own: the loss is the sum of what they have
(update-parameters)."""
PHASE = "intra.phase"
"""A function of intra: it takes no arguments, its buffers are named (lower-to-intra)."""
GRADIENTS = "intra.gradients"
"""Of a phase for each output that is a gradient the argument whose it is (lower-to-intra)."""
COTANGENTS = "intra.cotangents"
"""Of a phase for each input that is a cotangent the result whose it is (lower-to-intra)."""
READ_FOR = "intra.read_for"
"""Of a phase for each output that is a gradient the names of the rows that it is computed from
(lower-to-intra)."""
UPDATES = "intra.updates"
"""Of a phase for each output that updates an argument the name of that (lower-to-intra)."""

Kind = type[Attribute] | tuple[type[Attribute], ...]
Known = Mapping[str, Kind]

FUNCTIONS: Known = {
    **dict.fromkeys((SEEDED, UPDATED, SUMMED, PHASE), UnitAttr),
    **dict.fromkeys((STATS, GRADIENTS, COTANGENTS, READ_FOR, UPDATES), DictionaryAttr),
}
ARGUMENTS: Known = {
    **dict.fromkeys((NEEDS_GRAD, CONSTANT, GLOBAL_ROWS), UnitAttr),
    **dict.fromkeys((GLOBAL_COUNT, CLIP), ArrayAttr),
    COTANGENT: (StringAttr, UnitAttr),
    **dict.fromkeys((NAME, OPTIMIZER, STATE_OF, SUM_OF), StringAttr),
}
RESULTS: Known = {
    **dict.fromkeys((DETACHED, SAVED), UnitAttr),
    **dict.fromkeys((NAME, UPDATE, GRAD), StringAttr),
}
OPS: Known = {**dict.fromkeys((PREPARE, SAVE, RECOMPUTE), UnitAttr), KEPT: FloatAttr}
ENTRIES: Known = {
    STATS: (IntegerAttr, FloatAttr),
    **dict.fromkeys((GRADIENTS, COTANGENTS, UPDATES), StringAttr),
    READ_FOR: ArrayAttr,
}
"""What the dictionaries hold; lists hold names."""

DIALECTS = ("inter.", "intra.")


def check_attributes(module: ModuleOp) -> None:
    """Raises VerifyException for an attribute of the dialects that is none of these, stands in
    another place, or holds something else."""
    for op in module.walk():
        for what, attributes, known in _places(op):
            for name, value in attributes.items():
                if name.startswith(DIALECTS):
                    _check(what, name, value, known)


def _places(op: Operation) -> Iterator[tuple[str, Mapping[str, Attribute], Known]]:
    if not isinstance(op, FuncOp):
        yield f"an op ({op.name})", op.attributes, OPS
        return
    here = f"@{op.sym_name.data}"
    yield f"a function ({here})", op.attributes, FUNCTIONS
    for attrs in op.arg_attrs or ():
        yield f"an argument of {here}", attrs.data, ARGUMENTS
    for attrs in op.res_attrs or ():
        yield f"a result of {here}", attrs.data, RESULTS


def _check(what: str, name: str, value: Attribute, known: Known) -> None:
    if name not in known:
        by_word = {k.partition(".")[2]: k for k in known}
        near = difflib.get_close_matches(name.partition(".")[2], by_word, 1)
        meant = f"is {by_word[near[0]]} meant?" if near else f"there are {', '.join(sorted(known))}"
        raise VerifyException(f"{name} is no attribute of {what}: {meant}")
    wrong = [value] if not isinstance(value, known[name]) else []
    if not wrong and isinstance(value, DictionaryAttr):
        wrong = [v for v in value.data.values() if not isinstance(v, ENTRIES[name])]
    if known[name] is ArrayAttr and not isa(value, ArrayAttr[StringAttr]):
        wrong = [value]
    if wrong:
        raise VerifyException(f"{name} of {what} cannot hold {wrong[0]}")
