"""The arguments of an imported program: sets with their maps, rows, sizes, the dropout key.

Set arguments are made first, all of them; rows are added when a value asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import sympy
import torch
from torch import Tensor, fx
from torch.utils._sympy.printers import PythonPrinter
from xdsl.dialects.builtin import StringAttr, UnitAttr, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, SSAValue, TypeAttribute

from .....dialects.attributes import NAME, NEEDS_GRAD
from .....dialects.inter.sets import SetEnv
from .....dialects.inter.types import ONE, Dom, Map, RowsType, SetType, set_name
from ..binding import DropoutKey, FromSize, FromTensor, MapBinding, RowsBinding, SetBinding, Size
from ..errors import NoRule
from ..values.nodes import Filter, Loops, Node, Set, Union
from ..values.sizes import expression, is_unbacked
from ..values.tensors import elem_of_number
from .maps import Column, MapKey, Program, Use, column_of, named

ELEMENTS: dict[str, TypeAttribute] = {"f32": f32, "f64": f64, "i32": i32, "i64": i64, "i1": i1}


def argument_name(placeholder: str) -> str:
    """A readable name from Dynamo's: `L_self_modules_lin_parameters_weight_` is lin_weight."""
    name = re.sub(r"^[lL]_", "", placeholder).strip("_")
    name = re.sub(r"^self_", "", name)
    name = re.sub(r"(^|_)(modules|parameters|buffers)_", r"\1", name)
    name = re.sub(r"\W+", "_", name).strip("_").lower()
    return name if name and not name[0].isdigit() else f"p_{name}"


class Signature:
    """Collects the arguments of one program."""

    def __init__(self, placeholders: Sequence[fx.Node], needs_grad: Sequence[bool]) -> None:
        self.placeholders = list(placeholders)
        self.position = {n.name: i for i, n in enumerate(placeholders)}
        self.needs_grad = needs_grad
        self.sources = self._size_sources()
        self.sets: list[SetBinding] = []
        self.rows: list[RowsBinding] = []
        self.births: list[tuple[Set, SSAValue, dict[MapKey, str]]] = []
        self.constant_sets: list[Set] = []
        self.attributes: list[dict[str, Attribute]] = []
        self.names: dict[int, str] = {}
        self.arguments: dict[object, SSAValue] = {}
        self.argument_of: dict[str, str] = {}
        self.taken: set[str] = set()

    # ---------------------------------------------------------------- sizes

    def _size_sources(self) -> dict[str, tuple[int, int | None]]:
        """For each symbol the placeholder (and its dimension) that says it."""
        found: dict[str, tuple[int, int | None]] = {}
        for i, node in enumerate(self.placeholders):
            value = node.meta.get("example_value")
            if isinstance(value, torch.SymInt) and expression(value).is_Symbol:
                found.setdefault(str(expression(value)), (i, None))
        for i, node in enumerate(self.placeholders):
            value = node.meta.get("example_value")
            for d, size in enumerate(value.shape if isinstance(value, Tensor) else ()):
                if isinstance(size, torch.SymInt) and expression(size).is_Symbol:
                    name = str(expression(size))
                    if found.get(name, (0, None))[1] is None:
                        found[name] = (i, d)
        return found

    def is_unbacked(self, expr: sympy.Expr) -> bool:
        return any(is_unbacked(s) and str(s) not in self.sources for s in expr.free_symbols)

    def bind_size(self, expr: sympy.Expr) -> Size:
        """How the caller computes a size."""
        names = sorted(str(s) for s in expr.free_symbols)
        missing = [n for n in names if n not in self.sources]
        if missing:
            raise NoRule(f"the size {expr}, which no input of the graph tells")
        sources = tuple((n, *self.sources[n]) for n in names)
        return Size(PythonPrinter().doprint(expr), sources, _kind(expr))

    # ----------------------------------------------------------------- sets

    def start(self, env: SetEnv, program: Program, block: Block) -> None:
        """Makes the set arguments, with the maps that are columns of integer inputs."""
        arguments = [s for s in program.sets.values() if program.is_argument(s)]
        direct = {s.number: self._direct(program, s) for s in arguments}
        targets = {u.codomain.find().number for us in direct.values() for u, _ in us}
        labels = {
            s.number: named((u for u, _ in direct[s.number]), program.reserved_for_computed(s))
            for s in arguments
        }
        chosen = [
            s for s in arguments if direct[s.number] or s.number in targets or not s.expr.is_Integer
        ]
        self.constant_sets = [s for s in arguments if s not in chosen]
        self._name_sets(program, labels, direct)
        for s in sorted(chosen, key=lambda s: (bool(direct[s.number]), s.number)):
            maps, bindings, ends = {}, [], {"src", "dst"}
            for use, column in direct[s.number]:
                label = labels[s.number][_key(use)]
                ends |= {label} if "pair" in use.roles else set()
                codomain = self.name_of(use.codomain)
                maps[label] = Map(codomain)
                axis = column.source.attrs["axis"]
                where = self.position[column.source.attrs["source"]]
                bindings.append(MapBinding(label, codomain, where, axis, column.index))
            name = self.name_of(s)
            ordered = {k: maps[k] for k in sorted(maps, key=_label_order)}
            pairs = [("rel", k) for k in ordered if "rel" in maps and k in ends]
            kind = SetType.get(name, ordered, pairs=pairs)
            value = block.insert_arg(kind, len(block.args))
            value.name_hint = name
            env.add(value)
            self.sets.append(SetBinding(name, self.bind_size(s.expr), tuple(bindings)))
            self.attributes.append({NAME: StringAttr(name)})
            self.births.append((s, value, labels[s.number]))
        self.taken |= {b.name for b in self.sets}

    def _direct(self, program: Program, s: Set) -> list[tuple[Use, Column]]:
        """The uses of a set argument whose maps the caller can give."""
        out = []
        for use in program.uses.get(s.number, {}).values():
            column = column_of(use.index)
            if column is None or not program.is_argument(use.codomain):
                continue
            if column.source.home is s and column.source.attrs["source"] in self.position:
                out.append((use, column))
        return out

    def _name_sets(
        self,
        program: Program,
        labels: dict[int, dict[MapKey, str]],
        direct: dict[int, list[tuple[Use, Column]]],
    ) -> None:
        """Names of all sets: edges g, their ends N, relations R, and after their births."""
        for n, uses in direct.items():
            if uses and set(labels[n].values()) & {"src", "dst"}:
                self._name(program.sets[n], "g")
        for uses in program.uses.values():
            for use in uses.values():
                table = use.roles <= {"table", "relation"} and use.codomain.find().expr.is_Integer
                self._name(use.codomain, "R" if table else "N")
        for s in program.sets.values():
            hint = "f" if isinstance(s.origin, Filter) else "S"
            hint = "u" if isinstance(s.origin, Union) else hint
            self._name(s, "l" if isinstance(s.origin, Loops) else hint)

    def _name(self, s: Set, hint: str) -> None:
        s = s.find()
        if s.number in self.names:
            return
        used, name, count = set(self.names.values()), hint, 0
        while name in used:
            count += 1
            name = f"{hint}{count}"
        self.names[s.number] = name

    def name_of(self, s: Set) -> str:
        return self.names[s.find().number]

    # ----------------------------------------------------------------- rows

    def add(self, block: Block, key: object, binding: RowsBinding, dom: Dom = ONE) -> SSAValue:
        """One more rows argument, or the one made for the same key."""
        if key not in self.arguments:
            binding = replace(binding, name=self.unique(binding.name))
            kind = RowsType.get(dom, binding.shape, ELEMENTS[binding.elem])
            value = block.insert_arg(kind, len(block.args))
            value.name_hint = binding.name
            self.rows.append(binding)
            if isinstance(binding.source, FromTensor):
                self.argument_of[self.placeholders[binding.source.placeholder].name] = binding.name
            attributes: dict[str, Attribute] = {NAME: StringAttr(binding.name)}
            if binding.needs_grad:
                attributes[NEEDS_GRAD] = UnitAttr()
            self.attributes.append(attributes)
            self.arguments[key] = value
        return self.arguments[key]

    def unique(self, name: str) -> str:
        out, count = name, 0
        while out in self.taken:
            count += 1
            out = f"{name}_{count}"
        self.taken.add(out)
        return out

    def input(self, block: Block, v: Node, home: SSAValue | None) -> SSAValue:
        """A placeholder as rows; `home` is the set of its rows."""
        source = FromTensor(self.position[v.attrs["source"]], v.attrs["axis"])
        binding = RowsBinding(self.label(v), source, v.shape, v.elem, self.gives_gradient(v))
        dom = ONE if home is None else Dom(set_name(home))
        return self.add(block, v.number, binding, dom)

    def label(self, v: Node) -> str:
        """The name of the placeholder that an input is."""
        return argument_name(str(self.placeholders[self.position[v.attrs["source"]]].target))

    def gives_gradient(self, v: Node) -> bool:
        """Whether the gradient of a placeholder is wanted."""
        return v.elem in ("f32", "f64") and self.needs_grad[self.position[v.attrs["source"]]]

    def size(self, block: Block, expr: sympy.Expr) -> SSAValue:
        """A number that the caller computes from sizes."""
        elem, source = elem_of_number(expr), FromSize(self.bind_size(expr))
        return self.add(block, ("size", str(expr)), RowsBinding("size", source, (), elem, False))

    def key(self, block: Block) -> SSAValue:
        """The key of the dropouts of one call."""
        binding = RowsBinding("dropout_key", DropoutKey(), (), "i64", False)
        return self.add(block, "key", binding)


def _kind(expr: sympy.Basic) -> type[int | float | bool]:
    """The Python type of a number that is computed from sizes."""
    if not isinstance(expr, sympy.Expr):
        return bool
    return int if elem_of_number(expr) == "i64" else float


def _key(use: Use) -> MapKey:
    return use.index.number, use.codomain.find().number


def _label_order(label: str) -> tuple[int, str]:
    order = {"src": 0, "dst": 1, "rel": 2}
    return order.get(label, 3), label
