"""split-phases: one function becomes @prepare, @forward and @backward.

@prepare computes what depends on the graph only: all structure ops that need no float, and what
hoist-invariants marked `inter.prepare`. @forward computes the results and updates, @backward the
gradients (autodiff marked those with `inter.grad`); a function without gradients has no @backward.

A value that crosses is a result of one function and an argument of a later one, of the same type
and with the same `inter.name`. Results that cross only, and are none of the caller's, carry
`inter.saved`. Values that cost nothing (constants, sizes) do not cross: each phase makes its own.
A set that is named in a type must be known in a function, so sets cross that only types mention.

plan-saves decides what crosses from @forward to @backward: an op marked `inter.recompute` belongs
to the backward half, one marked `inter.save` to the forward half even if only gradients use it.
Without it, all forward values that gradients use cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...dialects.attributes import COTANGENT, GRAD, NAME, PREPARE, RECOMPUTE, SAVE, SAVED
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import is_check
from ...dialects.inter.types import RowsType, SetType, sets_of
from ...dialects.signature import (
    Attributes,
    Names,
    arg_attributes,
    arguments,
    body_ops,
    named_function,
    results,
)
from ..analysis.dependence import (
    FREE,
    ancestors,
    cotangents,
    dependants,
    in_order,
    structure_ancestors,
)

PHASES = ("prepare", "forward", "backward")


@dataclass
class Phase:
    """One of the functions to be: its ops in order, what it gives, what it is given."""

    name: str
    ops: list[Operation]
    results: list[tuple[SSAValue, Attributes]] = field(
        default_factory=list[tuple[SSAValue, Attributes]]
    )
    inputs: list[SSAValue] = field(default_factory=list[SSAValue])

    def provides(self) -> set[SSAValue]:
        """What its ops compute."""
        return {r for op in self.ops for r in op.results}


@dataclass
class Splitter:
    """Splits one function; the phases are filled from the last to the first, as each says what it
    needs of the earlier ones."""

    func: FuncOp

    def __post_init__(self) -> None:
        func = self.func
        self.env = SetEnv.of(func)
        self.ops = body_ops(func)
        self.place = {op: i for i, op in enumerate(self.ops)}
        self.arguments = dict(zip(func.body.block.args, arg_attributes(func), strict=True))
        self._name_values()

    def _name_values(self) -> None:
        """Arguments and results keep their names or get one; others get theirs on crossing."""
        self.value_names: dict[SSAValue, str] = {}
        given: set[str] = set()
        for name, arg, _ in arguments(self.func):
            if name in given:
                self._fail(f"two arguments are named {name!r}: give each its own {NAME}")
            self.value_names[arg] = name
            given.add(name)
        named: list[tuple[SSAValue, Attributes]] = []
        for name, value, attrs in results(self.func):
            if NAME not in attrs and isinstance(of := attrs.get(GRAD), StringAttr):
                name = f"d_{of.data}"
            if NAME not in attrs:
                name = Names(given).fresh(name)
            elif name in given:
                self._fail(f"two arguments or results are named {name!r}: give each its own {NAME}")
            given.add(name)
            named.append((value, {**attrs, NAME: StringAttr(name)}))
        self.results = named
        self.names = Names(given)

    def _fail(self, message: str) -> None:
        raise PassFailedException(f"split-phases: @{self.func.sym_name.data}: {message}")

    # ------------------------------------------------------------ who computes what

    def phases(self) -> list[Phase]:
        """The phases with their ops, results and inputs."""
        grads = [r for r in self.results if GRAD in r[1]]
        outputs = [r for r in self.results if GRAD not in r[1]]
        cots = set(cotangents(self.func))
        late = dependants(self.ops, set[SSAValue](cots))
        if any(v in late for v, _ in outputs):
            self._fail("a result that is no gradient depends on a cotangent: mark it inter.grad")

        early = structure_ancestors(self.func)
        early |= ancestors(r for op in self.ops if PREPARE in op.attributes for r in op.results)
        if any(r in late for op in early for r in op.results):
            self._fail(f"an op marked {PREPARE} depends on a cotangent: drop the mark")
        is_early = early.__contains__
        saved = [op.results[0] for op in self.ops if SAVE in op.attributes]
        middle = ancestors([*(v for v, _ in outputs), *saved], is_early)
        if any(RECOMPUTE in op.attributes for op in middle):
            self._fail(f"a result or saved value is computed by an op marked {RECOMPUTE}")
        rest = ancestors((v for v, _ in grads), lambda op: op in early or op in middle)

        prepare = Phase("prepare", in_order(self.ops, early))
        forward = Phase("forward", in_order(self.ops, middle), outputs)
        out = [prepare, forward]
        if grads or cots:
            out.append(Phase("backward", in_order(self.ops, rest), grads))
        for i in reversed(range(len(out))):
            self._link(out[i], out[:i])
        return out

    def _link(self, phase: Phase, earlier: Sequence[Phase]) -> None:
        """Finds what `phase` needs and makes the earlier phases give it."""
        if phase.name == "prepare":  # only what is used, and checks
            checks = [op.results[0] for op in phase.ops if is_check(op)]
            wanted = ancestors([*(v for v, _ in phase.results), *checks])
            phase.ops = in_order(phase.ops, wanted)
        self._add_free_ops(phase)
        provided = [(p, p.provides()) for p in earlier]
        given = set[SSAValue]().union(*(values for _, values in provided))
        while True:  # sets that only types name are made where nobody made them before
            phase.inputs = self._needs(phase)
            missing = [
                v for v in phase.inputs if v not in given and not isinstance(v, BlockArgument)
            ]
            if not missing:
                break
            own = ancestors(missing, lambda op: any(r in given for r in op.results))
            phase.ops = in_order(self.ops, {*phase.ops, *own})
        for value in phase.inputs:
            for p, values in provided:
                if value in values:
                    self._give(p, value)

    def _give(self, phase: Phase, value: SSAValue) -> None:
        if value in self.value_names:  # it crosses already
            return
        for known, given in phase.results:
            if known is value and isinstance(name := given[NAME], StringAttr):
                self.value_names[value] = name.data
                return
        owner = value.owner
        assert isinstance(owner, Operation)
        hint = value.type.label if isinstance(value.type, SetType) else value.name_hint
        kind = "prepared" if phase.name == "prepare" else "saved"
        name = self.names.fresh(hint or f"{kind}_{owner.name.split('.')[-1]}")
        self.value_names[value] = name
        attrs: dict[str, Attribute] = {NAME: StringAttr(name)}
        if phase.name != "prepare":
            attrs[SAVED] = UnitAttr()
        phase.results.append((value, attrs))

    def _add_free_ops(self, phase: Phase) -> None:
        own = set(phase.ops)
        todo = [x for op in phase.ops for x in op.operands] + [v for v, _ in phase.results]
        while todo:
            owner = todo.pop().owner
            if isinstance(owner, Operation) and owner.name in FREE and owner not in own:
                own.add(owner)
                todo.extend(owner.operands)
        phase.ops = sorted(own, key=self.place.__getitem__)

    def _needs(self, phase: Phase) -> list[SSAValue]:
        """The values from outside, in the order arguments (cotangents last), earlier results."""
        inside = phase.provides()
        needed: dict[SSAValue, None] = {}
        values = [x for op in phase.ops for x in op.operands] + [v for v, _ in phase.results]
        for v in values:
            if v not in inside:
                needed[v] = None
        mentioned = [v.type for v in (*values, *inside)]
        known: set[str] = set()
        while mentioned:
            for name in sets_of(mentioned.pop()):
                if name in known:
                    continue
                known.add(name)
                value = self.env.value(name)
                mentioned.append(value.type)
                if value not in inside:
                    needed[value] = None
        return sorted(needed, key=self._argument_order)

    def _argument_order(self, value: SSAValue) -> tuple[int, int]:
        if isinstance(value, BlockArgument):
            return (2 if COTANGENT in self.arguments[value] else 0, value.index)
        assert isinstance(value.owner, Operation)
        return (1, self.place[value.owner])

    # ------------------------------------------------------------ the functions

    def build(self, phase: Phase) -> FuncOp:
        """The function of a phase."""
        given = phase.results
        if phase.name == "prepare":  # sets first, each in the order of the program
            given = sorted(
                given, key=lambda r: (isinstance(r[0].type, RowsType), self._result_order(r[0]))
            )
        func = named_function(
            phase.name,
            [(self._crossing_type(v), self._argument_attributes(v)) for v in phase.inputs],
            [self._crossing_type(v) for v, _ in given],
            [attrs for _, attrs in given],
            self.func.attributes,
        )
        crossing = {v for v, _ in given}
        mapping: dict[SSAValue, SSAValue] = {}
        for value, arg in zip(phase.inputs, func.body.block.args, strict=True):
            mapping[value] = arg
            arg.name_hint = self.value_names[value]
        for op in phase.ops:
            copy = op.clone(mapping)
            for mark in (PREPARE, SAVE, RECOMPUTE):
                copy.attributes.pop(mark, None)
            func.body.block.add_op(copy)
            if op.results[0] in crossing:
                full = self._crossing_type(op.results[0])
                mapping[op.results[0]] = Rewriter.replace_value_with_new_type(copy.results[0], full)
        func.body.block.add_op(ReturnOp(*(mapping.get(v, v) for v, _ in given)))
        return func

    def _result_order(self, value: SSAValue) -> int:
        return self.place[value.owner] if isinstance(value.owner, Operation) else -1

    def _crossing_type(self, value: SSAValue) -> Attribute:
        """A set that crosses spells the equations that its structure op implied."""
        if isinstance(value.type, SetType) and not isinstance(value, BlockArgument):
            return self.env.full_type(value.type.label)
        return value.type

    def _argument_attributes(self, value: SSAValue) -> Attributes:
        name = StringAttr(self.value_names[value])
        if isinstance(value, BlockArgument):
            return {**self.arguments[value], NAME: name}
        return {NAME: name}


def split_phases(func: FuncOp) -> list[FuncOp]:
    """@prepare, @forward and, where there are gradients, @backward of `func`."""
    splitter = Splitter(func)
    return [splitter.build(phase) for phase in splitter.phases()]


@dataclass(frozen=True)
class SplitPhasesPass(ModulePass):
    """Splits the module's function into @prepare, @forward and @backward."""

    name = "split-phases"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        funcs = [f for f in op.body.block.ops if isinstance(f, FuncOp)]
        if len(funcs) != 1:
            raise PassFailedException(
                f"split-phases: the module has {len(funcs)} functions, it must have exactly one"
            )
        (func,) = funcs
        parts = split_phases(func)
        Rewriter.erase_op(func)
        op.body.block.add_ops(parts)
