"""lower-to-intra: the phases of split-phases become host functions over buffers.

Before: `func.func @forward(%N : !inter.set<N>, .., %x : !inter.rows<N, 8xf32>) -> ..` on sets and
rows. After: `func.func @forward() attributes {intra.phase}` with one nest an op, and `@structure`,
which keeps those `inter` ops of @prepare that make sets and what these depend on: the runtime runs
it as plain data.

Buffers are linked by name, as the values of the phases are. Every stored row of a value is computed
by exactly one nest; fuse-traversals then merges nests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...dialects.attributes import (
    CONSTANT,
    COTANGENT,
    COTANGENTS,
    GRAD,
    GRADIENTS,
    NAME,
    PHASE,
    READ_FOR,
    UPDATE,
    UPDATES,
)
from ...dialects.inter.base import StructureOp, ValueOp
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import RowsType, SetType, rows
from ...dialects.intra.bindings import AllocOp, ViewOp, root
from ...dialects.signature import (
    Names,
    arg_attributes,
    arguments,
    body_ops,
    name_of,
    named_function,
    result_attributes,
    results,
    return_of,
)
from ..analysis.costs import Sizes
from ..analysis.dependence import ancestors
from ..targets import DEFAULT, Target, target_of
from .context import INLINE, Lowering
from .nests import Host
from .rules import is_made_anew, lower

STRUCTURE = "structure"


@dataclass(frozen=True)
class LowerToIntraPass(ModulePass):
    """Lower phases to nests over buffers."""

    name = "lower-to-intra"

    target: str = DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(self.name, self.target)
        functions = [f for f in op.body.block.ops if isinstance(f, FuncOp) and f.body.blocks]
        phases = {f.sym_name.data: f for f in functions}
        if "forward" not in phases:
            raise PassFailedException(
                "lower-to-intra needs the phases of split-phases: there is no @forward"
            )
        if done := [f for f in functions if f.sym_name.data == STRUCTURE or PHASE in f.attributes]:
            raise PassFailedException(
                f"lower-to-intra: @{done[0].sym_name.data} is what this pass makes: the module is "
                "lowered already"
            )
        prepare = phases.get("prepare") or empty_function()
        structure, exported = split_structure(prepare, given_sets(functions))
        op.body.block.insert_op_before(structure, functions[0])
        for func in functions:
            lowered = lower_function(func, exported if func is prepare else {}, target)
            op.body.block.insert_op_before(lowered, func)
            Rewriter.erase_op(func)


# ---------------------------------------------------------------- @structure


GivenSets = dict[str, tuple[Attribute, Mapping[str, Attribute]]]


def given_sets(functions: list[FuncOp]) -> GivenSets:
    """The sets that the caller gives: arguments of a phase that no phase makes, by name."""
    sets: GivenSets = {}
    made: set[str] = set()
    for func in functions:
        for a, attrs in zip(func.body.block.args, arg_attributes(func), strict=True):
            if isinstance(a.type, SetType):
                sets.setdefault(a.type.label, (a.type, named(a, attrs)))
        made |= {op.set_type.label for op in func.body.block.ops if isinstance(op, StructureOp)}
    return {name: s for name, s in sets.items() if name not in made}


def empty_function() -> FuncOp:
    """What @prepare is where there is none."""
    func = named_function("prepare", [], [], [], {})
    func.body.block.add_op(ReturnOp())
    return func


def split_structure(prepare: FuncOp, given: GivenSets) -> tuple[FuncOp, dict[SSAValue, str]]:
    """@structure with the set-making ops of @prepare, and the rows it hands on: value -> name.

    Its arguments are all given sets, so that it says of each where its maps lead, and the rows that
    sets are made from.
    """
    wanted = structure_closure(prepare)
    pairs = list(zip(prepare.body.block.args, arg_attributes(prepare), strict=True))
    read = [
        (a, d)
        for a, d in pairs
        if any(u.operation in wanted for u in a.uses) and isinstance(a.type, RowsType)
    ]
    returned = list(zip(return_of(prepare).operands, result_attributes(prepare), strict=True))
    sets = [(v, d) for v, d in returned if isinstance(v.type, SetType) and isinstance(v, OpResult)]
    names = Names([name_of(v, d, "value") for v, d in (*pairs, *returned)])
    exported: dict[SSAValue, str] = {
        r: names.fresh(f"structure_{r.name_hint or 'rows'}")
        for op in body_ops(prepare)
        if op in wanted and not isinstance(op, INLINE)
        for r in op.results
        if isinstance(r.type, RowsType) and any(u.operation not in wanted for u in r.uses)
    }
    out = named_function(
        STRUCTURE,
        [*given.values(), *((a.type, named(a, d)) for a, d in read)],
        [v.type for v, _ in sets] + [v.type for v in exported],
        [d for _, d in sets] + [{NAME: StringAttr(n)} for n in exported.values()],
        {},
    )
    block = out.body.block
    value: dict[SSAValue, SSAValue] = {}
    olds = {a.type.label: a for a, _ in pairs if isinstance(a.type, SetType)}
    for name, new in zip(given, block.args, strict=False):
        new.name_hint = name
        if name in olds:
            value[olds[name]] = new
    for (old, _), new in zip(read, block.args[len(given) :], strict=True):
        new.name_hint = old.name_hint
        value[old] = new
    for op in body_ops(prepare):
        if op in wanted:
            block.add_op(op.clone(value))
    block.add_op(ReturnOp(*(value[v] for v, _ in sets), *(value[v] for v in exported)))
    return out, exported


def named(value: SSAValue, attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """The attributes of an argument with its name spelled out."""
    return {**attributes, NAME: StringAttr(name_of(value, attributes, "value"))}


def structure_closure(func: FuncOp) -> set[Operation]:
    """Structure ops and everything they are made from."""
    wanted: set[Operation] = set()
    for op in reversed(body_ops(func)):
        used = any(u.operation in wanted for r in op.results for u in r.uses)
        if isinstance(op, StructureOp) or used:
            wanted.add(op)
    return wanted


# ---------------------------------------------------------------- phases


def lower_function(func: FuncOp, exported: dict[SSAValue, str], target: Target) -> FuncOp:
    """One phase; `exported` are the values that @structure computes, by the name it gives them."""
    env = SetEnv.of(func)
    low = Lowering(Host(env), Sizes.of(func, env), target)
    names = [name for name, _, _ in arguments(func)]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise PassFailedException(
            f'lower-to-intra: two arguments of @{func.sym_name.data} are named "{twice[0]}"'
        )
    for name, arg, attrs in arguments(func):
        if isinstance(arg.type, RowsType):
            low.buffers[arg] = low.host.input(name, arg.type, attrs.get(CONSTANT))
    for v, name in exported.items():
        low.buffers[v] = low.host.input(name, rows(v))
    done = structure_closure(func) if func.sym_name.data == "prepare" else set[Operation]()
    ops = body_ops(func)
    if late := [op for op in ops if isinstance(op, StructureOp) and op not in done]:
        raise PassFailedException(
            f"lower-to-intra: {late[0].name} in @{func.sym_name.data} depends on float values of "
            "the call; sets are made in @prepare"
        )
    lower(low, [op for op in ops if op not in done and isinstance(op, ValueOp)])
    bind_results(func, low)
    block = low.host.block()
    block.add_op(ReturnOp())
    out = FuncOp(func.sym_name.data, ([], []), Region(block))
    out.attributes[PHASE] = UnitAttr()
    marked = (
        (results(func), GRADIENTS, GRAD),
        (results(func), UPDATES, UPDATE),
        (arguments(func), COTANGENTS, COTANGENT),
    )
    for values, kind, mark in marked:
        if of := {name: x for name, _, a in values if isinstance(x := a.get(mark), StringAttr)}:
            out.attributes[kind] = DictionaryAttr(of)
    if read := {name: names_read(func, v) for name, v, a in results(func) if GRAD in a}:
        out.attributes[READ_FOR] = DictionaryAttr(read)
    return out


def names_read(func: FuncOp, value: SSAValue) -> ArrayAttr[StringAttr]:
    """The rows arguments that a value is computed from, but for cotangents."""
    made_of = {x for op in ancestors([value]) for x in op.operands} | {value}
    return ArrayAttr(
        StringAttr(name)
        for name, arg, attrs in arguments(func)
        if arg in made_of and isinstance(arg.type, RowsType) and COTANGENT not in attrs
    )


def bind_results(func: FuncOp, low: Lowering) -> None:
    """Let each returned value be computed in its output buffer, by a copy where that is shared."""
    bound: set[SSAValue] = set()
    for name, v, _ in results(func):
        if not isinstance(v.type, RowsType):
            continue
        t = rows(v)
        out = low.host.output(name, t.dom, t.dims, t.elem)
        buffer = None if is_made_anew(v) else low.buffer(v)
        alloc = None if buffer is None else allocation(buffer)
        if buffer is None or alloc is None or root(buffer) in bound:
            nest = low.host.nest(t.dom)
            nest.store(low.read(nest, v), out)
            continue
        put_in_place(low, alloc, buffer, out)
        bound.add(out)


def allocation(buffer: SSAValue) -> AllocOp | None:
    """The temporary that a buffer is, or is a view of as a whole."""
    while isinstance(buffer.owner, ViewOp):
        buffer = buffer.owner.buffer
    return buffer.owner if isinstance(buffer.owner, AllocOp) else None


def put_in_place(low: Lowering, alloc: AllocOp, buffer: SSAValue, out: SSAValue) -> None:
    """Lets `out` be the memory of a temporary, which `buffer` is or is a view of."""
    view = None
    if buffer is not alloc.result:
        view = ViewOp.make([out], [alloc.result.type], domain=alloc.domain)
    low.host.move_first(out, view)
    memory = out if view is None else view.result
    alloc.result.replace_all_uses_with(memory)
    del low.host.head[alloc]
    low.moved[alloc.result] = memory
