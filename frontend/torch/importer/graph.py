"""import_graph: an FX graph as one `inter` module with the description of how to call it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects.inter.sets import DifferentSets
from ....dialects.inter.types import Dom, set_name
from .binding import (
    Check,
    Constant,
    Copy,
    Imported,
    Number,
    Result,
    ResultBinding,
    Same,
    UpdateBinding,
)
from .effects import storage
from .emit import Emitter
from .errors import ImportCrash, NoRule, Unsupported
from .maps import Program, row_wise_operands
from .signature import Signature, argument_name
from .tensors import Arr, Merge, Sym
from .values import Node
from .walk import Foreign, Walk

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
    walk = Walk(gm.graph, float_masks=float_masks, rows=gm.meta.get(ROWS, frozenset())).run()
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


def leaves(tree: Any) -> list[Any]:
    """The leaves of nested tuples, lists and dicts, in order."""
    if isinstance(tree, dict):
        return [x for v in tree.values() for x in leaves(v)]
    if isinstance(tree, tuple | list):
        return [x for v in tree for x in leaves(v)]
    return [tree]


def _item(tree: Any, key: Any) -> Any:
    """An item of nested nodes; None of a single node that gives them all."""
    return tree[key] if isinstance(tree, dict | tuple | list) else None


_CONSTANTS = (bool, int, float, str, torch.dtype, torch.device, type(None))


class _Assembly:
    """Puts the program of a walk together."""

    def __init__(self, walk: Walk, needs_grad: Sequence[bool]) -> None:
        self.walk = walk
        self.signature = Signature(walk.placeholders, needs_grad)
        self.inputs = {x.v.number: node for node, x in walk.inputs.items() if isinstance(x, Arr)}
        returned = [x for x in leaves(walk.outputs) if isinstance(x, Arr) and not self.same(x)]
        wanted = [*returned, *walk.updates.values()]
        homes = [x.home for x in wanted if x.home is not None]
        context = walk.context
        edited = {x.v.number for node, x in walk.inputs.items() if node in walk.updates}
        self.bounds = [
            (v, size)
            for v, size in context.bounds
            if not any(x.number in edited for x in row_wise_operands(v))  # no longer that input
        ]
        roots = [x.v for x in wanted] + [v for v, _ in self.bounds]
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
        for v, size in self.bounds:
            self.emitter.check_below(v, size)
        outputs = self.output(self.walk.outputs, self.walk.returned)
        updates = tuple(self.update(node, x) for node, x in self.walk.updates.items())
        self.block.add_op(ReturnOp(*self.values))
        func = FuncOp(
            name,
            ([a.type for a in self.block.args], [v.type for v in self.values]),
            Region(self.block),
            arg_attrs=ArrayAttr(self.signature.attribute_dicts()),
            res_attrs=ArrayAttr(DictionaryAttr(a) for a in self.attributes),
        )
        module = ModuleOp([func])
        module.verify()
        self.emitter.env.verify_names()
        return Imported(
            module,
            tuple(self.signature.sets),
            tuple(self.signature.rows),
            tuple(self.results),
            updates,
            outputs,
            self.checks(),
            tuple((str(e), n) for e, n in self.walk.context.sizes.widths.items()),
            tuple(n.name for n in self.walk.placeholders),
        )

    def wanted(self, v: Node) -> bool:
        """Whether a value is computed in its place; leaves come when somebody reads them, and
        integer rows may turn out to be maps that nobody reads as numbers."""
        return v.elem in ("f32", "f64") and v.op not in ("input", "const", "table")

    # -------------------------------------------------------------- results

    def same(self, x: Arr) -> fx.Node | None:
        """The placeholder that a tensor is, unless it is edited."""
        node = self.inputs.get(x.v.number)
        if node is None or node in self.walk.updates:
            return None
        mine = self.walk.inputs[node]
        return node if len(mine.dims) == len(x.dims) and mine.axis == x.axis else None

    def output(self, x: Any, node: Any) -> Any:
        """Where an output comes from: `x` is the meaning of `node`, or of the nodes in it."""
        if isinstance(x, dict):
            return {k: self.output(v, _item(node, k)) for k, v in x.items()}
        if isinstance(x, tuple | list):
            return type(x)(self.output(y, _item(node, k)) for k, y in enumerate(x))
        if isinstance(x, Sym):
            return Number(self.signature.bind_size(x.expr))
        if isinstance(x, Foreign):
            return Same(self.walk.placeholders.index(x.node))
        if not isinstance(x, Arr):
            if not isinstance(x, _CONSTANTS):
                raise NoRule("a value that only other rules can read is returned")
            return Constant(x)
        placeholder = self.same(x)
        if placeholder is not None:
            position = self.walk.placeholders.index(placeholder)
            apart = isinstance(node, fx.Node) and storage(node) != storage(placeholder)
            return Copy(position) if apart else Same(position)
        binding, value = self.result(x, f"out{len(self.results)}")
        self.results.append(binding)
        self.values.append(value)
        self.attributes.append({"inter.name": StringAttr(binding.name)})
        return Result(len(self.results) - 1)

    def result(self, x: Arr, name: str) -> tuple[ResultBinding, SSAValue]:
        value = self.emitter.value(x.v)[0]
        home = None
        if x.home is not None:
            stages = self.emitter.set(x.home).values
            if x.v.set is None:
                value = self.emitter.b.widen(value, Dom(set_name(stages[0])))
            home = set_name(stages[0])
        dims = tuple(d if isinstance(d, int) else -1 for d in x.dims)
        merge = next((d.k for d in x.dims if isinstance(d, Merge)), 1)
        return ResultBinding(name, dims, x.axis, merge, x.elem, home), value

    def update(self, node: fx.Node, x: Arr) -> UpdateBinding:
        start = self.walk.inputs[node]
        if start.v.number not in self.signature.arguments:
            self.emitter.emit_input(start.v)
        argument = self.signature.argument_of[node.name]
        binding, value = self.result(x, f"new_{argument}")
        self.values.append(value)
        self.attributes.append(
            {"inter.name": StringAttr(binding.name), "inter.update": StringAttr(argument)}
        )
        return UpdateBinding(self.walk.placeholders.index(node), argument, binding)

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
