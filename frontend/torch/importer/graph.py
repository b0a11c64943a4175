"""import_graph: an FX graph as one `inter` module with the description of how to call it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects.attributes import NAME, UPDATE
from ....dialects.inter.sets import DifferentSets
from ....dialects.inter.types import Dom, set_name
from ....passes.analysis.edge_order import edge_orders
from .binding import Assertion, Attached, Check, Imported, ResultBinding, UpdateBinding
from .emit.arguments import Signature, argument_name
from .emit.emit_rows import Emitter
from .emit.maps import Program, row_wise_operands
from .errors import ImportCrash, NoRule, Unsupported
from .memory.attached import Unknown, attachments, attachments_of_program
from .memory.history import check_edits, takes_part
from .memory.saved import read_in_backward
from .outputs import Returned
from .relations import relations_of
from .values.held import Held
from .values.nodes import Node
from .values.tensors import Arr, Merge
from .walk import Walk

ROWS = "gnnc_rows"
"""The entry of a graph module's `meta` with the symbols that count rows in the graph that it is a
part of."""


def import_graph(
    gm: fx.GraphModule,
    needs_grad: Sequence[bool] | None = None,
    name: str = "main",
    *,
    float_masks: bool = True,
) -> Imported:
    """The program of a graph that Dynamo traced: one function @`name`.

    `needs_grad` tells for each placeholder whether its gradient is wanted; by default those of
    floats whose example tensor requires it. Raises `Unsupported` for the first node that has no
    meaning in sets and rows, `ImportCrash` where the importer itself fails. Without `float_masks`
    rows chosen by a mask that depends on floats have none (see `Context`).
    """
    walk = Walk(gm.graph, float_masks=float_masks, rows=gm.meta.get(ROWS, frozenset()))
    if ROWS not in gm.meta:  # of a part of a graph the whole has been asked
        check_edits(gm.graph, walk.aliases)
    walk.run()
    wanted = _grads(walk, needs_grad)
    try:
        return _Assembly(walk, wanted).build(name)
    except (NoRule, DifferentSets) as error:
        raise Unsupported(None, str(error)) from None
    except Exception as error:
        raise ImportCrash(None, error) from error


def _grads(walk: Walk, given: Sequence[bool] | None) -> list[bool]:
    if given is not None:
        if len(given) != len(walk.placeholders):
            raise ValueError(
                f"needs_grad has {len(given)} entries for {len(walk.placeholders)} placeholders"
            )
        return list(given)
    out = []
    for node in walk.placeholders:
        value = node.meta.get("example_value")
        out.append(isinstance(value, torch.Tensor) and value.requires_grad)
    return out


def _among(a: Attached, results: AbstractSet[int]) -> Attached:
    """Attached to no other results than these."""
    return replace(a, results=a.results & results)


class _Assembly:
    """Puts the program of a walk together."""

    def __init__(self, walk: Walk, needs_grad: Sequence[bool]) -> None:
        self.walk = walk
        self.signature = Signature(walk.placeholders, needs_grad)
        self.returned = Returned(walk, self.signature.bind_size)
        held = [a.condition for a in walk.context.assertions]
        wanted = [*(x for x, _ in self.returned.wanted), *held, *walk.updates.values()]
        context = walk.context
        edited = {x.v.number for node, x in walk.inputs.items() if node in walk.updates}
        self.bounds = [
            bound
            for bound in context.bounds
            # no longer that input
            if not any(x.number in edited for x in row_wise_operands(bound.number))
        ]
        roots = [x.v for x in wanted] + [b.number for b in self.bounds]
        homes = [x.home for x in wanted if x.home is not None] + [b.rows for b in self.bounds]
        self.program = Program(context.sizes, context.items, roots, homes)
        self.block = Block()
        self.emitter = Emitter(self.program, self.signature, self.block)
        self.values: list[SSAValue] = []
        self.attributes: list[dict[str, Attribute]] = []
        self.results: list[ResultBinding] = []

    def build(self, name: str) -> Imported:
        for v in self.program.nodes:
            if self.wanted(v):
                self.emitter.value(v)
        for bound in self.bounds:
            self.emitter.check(bound)
        for x, order in self.returned.wanted:
            self.add_result(x, order)
        assertions = tuple(self.assertion(a) for a in self.walk.context.assertions)
        updates = tuple(self.update(node, x) for node, x in self.walk.updates.items())
        self.block.add_op(ReturnOp(*self.values))
        func = FuncOp(
            name,
            ([a.type for a in self.block.args], [v.type for v in self.values]),
            Region(self.block),
            arg_attrs=ArrayAttr(DictionaryAttr(a) for a in self.signature.attributes),
            res_attrs=ArrayAttr(DictionaryAttr(a) for a in self.attributes),
        )
        module = ModuleOp([func])
        module.verify()
        self.emitter.env.verify_names()
        orders = edge_orders(func)
        return Imported(
            module,
            tuple(replace(s, order=orders.get(s.name)) for s in self.signature.sets),
            tuple(self.signature.rows),
            tuple(self.results),
            updates,
            self.returned.tree,
            self.checks(),
            tuple((str(e), n) for e, n in self.walk.context.sizes.widths.items()),
            tuple(n.name for n in self.walk.placeholders),
            self.attached(func, updates),
            tuple(None if n is None else n.name for n in self.returned.nodes),
            self.reread(func, updates),
            self.walk.masks,
            assertions,
            relations_of(self.walk.graph),
        )

    def reread(self, func: FuncOp, updates: Sequence[UpdateBinding]) -> tuple[int, ...]:
        """The edited placeholders that results are made of."""
        first = len(self.results)
        values = [self.values[first + k] for k, u in enumerate(updates) if u.recorded]
        made_of = {*self.values[:first], *values}
        for op in reversed(func.body.block.ops):
            if made_of.intersection(op.results):
                made_of.update(op.operands)
        names = {v.name_hint for v in func.body.block.args if v in made_of}
        position, name = self.walk.placeholders.index, self.signature.argument_of
        return tuple(position(n) for n in self.walk.updates if name[n.name] in names)

    def attached(self, func: FuncOp, updates: Sequence[UpdateBinding]) -> tuple[Attached, ...]:
        """What the results that are returned are attached to, and the updates: the user may look
        at the gradient of an edited argument as at that of a result."""
        placeholders, wanting = self.walk.placeholders, self.signature.needs_grad
        edited = any(wanting[u.placeholder] or u.recorded for u in updates)
        by_program = attachments_of_program(func, self.signature.rows, len(self.values))
        first, returned = len(self.results), len(self.returned.nodes)
        recorded = [first + k for k, u in enumerate(updates) if u.recorded]
        self.check_apart(recorded)
        seen = {*range(returned), *recorded}
        try:
            if edited or self.walk.hides_history():
                raise Unknown
            found = attachments(placeholders, self.returned.nodes, self.returned.views)
        except Unknown:
            found = [_among(a, seen) for a in by_program[:returned]]
        found += [Attached()] * (first - returned)  # assertions
        for i in range(first, len(self.values)):
            found.append(_among(by_program[i], seen) if i in recorded else Attached())
        nodes = [*self.returned.nodes, *[None] * (first - returned), *self.walk.updates]
        reads = read_in_backward(placeholders, nodes, self.walk.updates.keys())
        # what else a backward of an edit may read, nobody has asked of it yet
        reads[first:] = [replace(r, perhaps=None) for r in reads[first:]]
        found = [replace(a, reads=r) for a, r in zip(found, reads, strict=True)]
        wanted = frozenset(i for i, grad in enumerate(wanting) if grad)
        return tuple(replace(a, placeholders=a.placeholders & wanted) for a in found)

    def check_apart(self, recorded: Sequence[int]) -> None:
        """Raises NoRule where an argument becomes the very value that is a result, or that another
        argument becomes: which is made of which, values do not tell."""
        for i in recorded:
            if self.values.count(self.values[i]) > 1:
                raise NoRule(f"{self.attributes[i]['inter.name']} is the value of another result")

    def wanted(self, v: Node) -> bool:
        """Whether a value is computed in its place; leaves come when somebody reads them, and
        integer rows may turn out to be maps that nobody reads as numbers."""
        return v.elem in ("f32", "f64") and v.op not in ("input", "const", "table")

    # -------------------------------------------------------------- results

    def assertion(self, held: Held) -> Assertion:
        self.add_result(held.condition, None)
        return Assertion(len(self.results) - 1, held.message, held.raised)

    def add_result(self, x: Arr, order: tuple[int, ...] | None) -> None:
        name = self.signature.unique(f"out{len(self.results)}")
        binding, value = self.result(x, name)
        self.results.append(replace(binding, order=order))
        self.values.append(value)
        self.attributes.append({NAME: StringAttr(binding.name)})

    def result(self, x: Arr, name: str) -> tuple[ResultBinding, SSAValue]:
        value = self.emitter.value(x.v)[0]
        home = None
        if x.home is not None:
            stages = self.emitter.set(x.home).values
            if x.v.set is None:
                value = self.emitter.b.widen(value, Dom(set_name(stages[0])))
            home = set_name(stages[0])
        dims = tuple(d if isinstance(d, int) else -1 for d in x.dims)
        merge = next((d for d in x.dims if isinstance(d, Merge)), None)
        k, within = (1, False) if merge is None else (merge.k, merge.within)
        return ResultBinding(name, dims, x.axis, k, x.elem, home, within=within), value

    def update(self, node: fx.Node, x: Arr) -> UpdateBinding:
        start = self.walk.inputs[node]
        if start.v.number not in self.signature.arguments:
            self.emitter.emit_input(start.v)
        argument = self.signature.argument_of[node.name]
        binding, value = self.result(x, self.signature.unique(f"new_{argument}"))
        recorded = takes_part(node) and self.walk.modes.records
        self.values.append(value)
        attributes = {NAME: StringAttr(binding.name)}
        if not recorded:  # else it must not be written over what it is made from
            attributes[UPDATE] = StringAttr(argument)
        self.attributes.append(attributes)
        return UpdateBinding(self.walk.placeholders.index(node), argument, binding, recorded)

    def checks(self) -> tuple[Check, ...]:
        out: dict[tuple[str, str], Check] = {}
        canonical = self.walk.context.sizes.canonical
        for a, b in self.walk.context.sizes.checks:
            a, b = canonical(a), canonical(b)
            if a == b:
                continue
            if self.signature.is_unbacked(a) or self.signature.is_unbacked(b):
                raise NoRule(f"rows of two sets meet whose sizes {a} and {b} depend on data")
            left, right = self.signature.bind_size(a), self.signature.bind_size(b)
            message = f"{self.speaks_of(left)} and {self.speaks_of(right)} meet row by row"
            out[left.text, right.text] = Check(left, right, message)
        return tuple(out.values())

    def speaks_of(self, size: Any) -> str:
        names = [argument_name(str(self.walk.placeholders[p].target)) for _, p, _ in size.names]
        return ", ".join(names) or size.text
