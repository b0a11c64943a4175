"""How a program's module is called: placeholders for the graph, then the program's tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.dialects.func import FuncOp

from ....dialects.inter.types import UNIT, RowsType, is_float
from ....dialects.signature import arguments, results
from ....passes.inter.autodiff import made_of
from ...loops.as_text import GRAPH
from ...loops.emit import EDGES, RELATIONS, TYPES, Form, emit
from ...loops.values import Program, Site
from ..importer import Imported
from ..importer.binding import (
    Attached,
    FromTensor,
    MapBinding,
    Result,
    ResultBinding,
    RowsBinding,
    SetBinding,
    Size,
)
from .graph import Graph

PLACE = {name: i for i, name in enumerate(GRAPH)}


def flat(graph: Graph, tensors: list[Tensor]) -> list[Any]:
    """The placeholders of a call."""
    return [*(getattr(graph, name) for name in GRAPH), *tensors]


def imported(program: Program, form: Form) -> Imported:
    """The module of a program with the description of how to call it."""
    module = emit(program, form)
    (func,) = module.ops
    assert isinstance(func, FuncOp)
    return _Binder(program, form, module, func).imported()


@dataclass
class _Binder:
    program: Program
    form: Form
    module: ModuleOp
    func: FuncOp

    def imported(self) -> Imported:
        placeholders = (*GRAPH, *self.program.arguments)
        bound = tuple(self.result(name, v.type) for name, v, _ in results(self.func))
        leaves = tuple(Result(i) for i in range(len(bound)))
        return Imported(
            self.module,
            self.sets(),
            self.rows(),
            bound,
            (),
            leaves[0] if self.program.single else leaves,
            (),
            tuple(self.form.widths.items()),
            placeholders,
            self.attached(),
            tuple(b.name for b in bound),
        )

    # ------------------------------------------------------------ sets

    def sets(self) -> tuple[SetBinding, ...]:
        names = self.form.node_sets()
        src, dst = names[Site.SRC], names[Site.DST]
        ends = [self.map("src", src, "edge_index", 0), self.map("dst", dst, "edge_index", 1)]
        if self.program.etypes:
            ends.append(self.map("rel", RELATIONS, "edge_type"))
        edges = Size("edges", (("edges", PLACE["edge_index"], 1),))
        bound = {
            src: SetBinding(src, size("num_src"), self.tags("src_type")),
            dst: SetBinding(dst, size("num_dst"), self.tags("dst_type")),
            RELATIONS: SetBinding(RELATIONS, size("num_edge_types"), ()),
            TYPES: SetBinding(TYPES, size("num_node_types"), ()),
            EDGES: SetBinding(EDGES, edges, tuple(ends)),
        }
        if src == dst:
            bound[src] = SetBinding(src, size("num_src"), self.tags("src_type"))
        return tuple(bound[n] for n, a, _ in arguments(self.func) if not is_rows(a.type))

    def tags(self, name: str) -> tuple[MapBinding, ...]:
        return (self.map("ntype", TYPES, name),) if self.program.ntypes else ()

    @staticmethod
    def map(label: str, codomain: str, source: str, column: int | None = None) -> MapBinding:
        index = () if column is None else (column,)
        return MapBinding(label, codomain, PLACE[source], len(index), index)

    # ------------------------------------------------------------ rows

    def rows(self) -> tuple[RowsBinding, ...]:
        out: list[RowsBinding] = []
        first = len(GRAPH)
        given = [(n, a.type) for n, a, _ in arguments(self.func) if is_rows(a.type)]
        for i, (name, kind) in enumerate(given):
            axis = None if kind.dom.set == UNIT else 0
            source = FromTensor(first + i, axis)
            wanted = name in self.form.needs_grad
            out.append(RowsBinding(name, source, kind.dims, elem(kind), wanted))
        return tuple(out)

    def result(self, name: str, kind: Any) -> ResultBinding:
        return ResultBinding(name, (-1, *kind.dims), 0, 1, elem(kind), kind.dom.set)

    def attached(self) -> tuple[Attached, ...]:
        """What autograd sees each result made of."""
        place = {n: len(GRAPH) + i for i, n in enumerate(self.program.arguments)}
        wanted = {n: p for n, p in place.items() if n in self.form.needs_grad}
        return tuple(
            Attached(frozenset(wanted[n] for n in names if n in wanted))
            for names, _ in made_of(self.func)
        )


def size(name: str) -> Size:
    return Size(name, ((name, PLACE[name], None),))


def is_rows(kind: Any) -> bool:
    return isinstance(kind, RowsType)


def elem(kind: RowsType) -> str:
    assert is_float(kind.elem)
    return {f32: "f32", f64: "f64"}[kind.elem]
