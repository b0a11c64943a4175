"""A program as a function of torch in text: what the formulas say, step by step over all rows.

Dynamo traces it where a program is part of a model that is compiled as a whole, and it runs where
torch has to (second derivatives). It knows no widths in numbers: values are aligned by axes.
"""

from __future__ import annotations

from collections.abc import Callable

from .fitting import rows_of
from .values import Program, Site, Value, is_degree
from .widths import Shape, places

GRAPH = (
    "edge_index",
    "num_src",
    "num_dst",
    "edge_type",
    "num_edge_types",
    "src_type",
    "dst_type",
    "num_node_types",
)
"""The attributes of a graph, in the order in which the function takes them."""

_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"} | {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "logical_and": "&",
    "logical_or": "|",
}
_FUNCTIONAL = ("gelu", "softplus", "relu", "leaky_relu", "elu")
_FOLDS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}
_LETTERS = "abcdefghijklmnopqrstuvw"
ROW = "z"
"""The letter of the rows in an einsum."""


def as_text(program: Program) -> str:
    """The text of two functions: `main_` over the attributes of a graph and the program's tensors,
    and `call_` with the signature of the program. They use `torch`, `F` (torch.nn.functional) and
    `leaves` (torch.ops.gnnc)."""
    tree, graph = program.source.tree.args, program.graph
    plain = [a.arg for a in tree.args]
    keywords = ["*", *(a.arg for a in tree.kwonlyargs)] if tree.kwonlyargs else []
    given = ", ".join((*(f"{graph}.{name}" for name in GRAPH), *program.arguments))
    call = f"def call_({', '.join((*plain, *keywords))}):\n    return main_({given})\n"
    return _Writer(program).text() + call


class _Writer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []
        self.done: dict[Value, str] = {}
        self.inputs = {n: f"a_{n}" for n in program.arguments}
        self.like = next(iter(self.inputs.values()), "edge_index.float()")
        one = program.one_kind
        self.counts = {
            Site.SRC: self.count("num_src", ("SrcNodes", *(("Nodes", "DstNodes") if one else ()))),
            Site.DST: self.count("num_dst", ("DstNodes", *(("Nodes", "SrcNodes") if one else ()))),
            Site.EDGE: "edge_index.shape[1]",
        }
        if one:
            self.counts[Site.DST] = self.counts[Site.SRC]
        self.counts[Site.NODE] = self.counts[Site.SRC]

    def count(self, name: str, kinds: tuple[str, ...]) -> str:
        """How many rows there are: as a tensor with these has them, else as the graph says."""
        arguments = self.program.arguments.values()
        return next((f"{self.inputs[a.name]}.shape[0]" for a in arguments if a.kind in kinds), name)

    def text(self) -> str:
        results = [self.value(v) for _, v in self.program.results]
        names = ", ".join((*GRAPH, *self.inputs.values()))
        back = ", ".join(results) + ("" if self.program.single else ",")
        body = ["src, dst = edge_index[0], edge_index[1]", *self.lines, f"return {back}"]
        return f"def main_({names}):\n" + "".join(f"    {line}\n" for line in body)

    def value(self, v: Value) -> str:
        """The name of a value, whose line is written at its first use."""
        if v not in self.done:
            make: Callable[[Value], str] = getattr(self, f"text_{v.op}")
            line = make(v)
            if v.op == "input":
                self.done[v] = line
            else:
                self.done[v] = f"v{len(self.done)}"
                self.lines.append(f"{self.done[v]} = {line}")
        return self.done[v]

    # ------------------------------------------------------------ leaves

    def text_input(self, v: Value) -> str:
        return self.inputs[v.attrs["name"]]

    def text_const(self, v: Value) -> str:
        return f"{self.like}.new_full((), {v.attrs['value']!r})"

    def text_width(self, v: Value) -> str:
        factors = " * ".join(self.width(f) for f in v.attrs["width"].split("*"))
        return f"{self.like}.new_full((), {factors})"

    def width(self, name: str) -> str:
        """A width as an expression of the shapes of tensors."""
        if name.isdigit():
            return name
        for exact in (True, False):
            for a in self.program.arguments.values():
                for i, w in enumerate(a.shape):
                    factors = w.split("*")
                    if w == name if exact else name in factors:
                        axis = i + (rows_of(a) is not None)
                        factors.remove(name)
                        others = "".join(f" // {self.width(f)}" for f in factors)
                        return f"({self.inputs[a.name]}.shape[{axis}]{others})"
        raise AssertionError(name)

    def text_block(self, v: Value) -> str:
        *ends, table = v.attrs["path"].split(".")
        if table == "etype":
            index = "edge_type"
        elif ends:
            index = f"{ends[0]}_type[{ends[0]}]"
        else:
            index = "dst_type" if v.site is Site.DST else "src_type"
        return f"{self.inputs[v.attrs['name']]}.index_select(0, {index})"

    def text_read(self, v: Value) -> str:
        return f"{self.value(v.args[0])}.index_select(0, {v.attrs['path']})"

    def text_degree(self, v: Value) -> str:
        side, *typed = v.attrs["along"]
        count = self.counts[Site.DST if side == "dst" else Site.SRC]
        if typed:
            types = self.types()
            return f"leaves.pair_count({side}, edge_type, {count}, {types}, {self.like})"
        ones = f"{self.like}.new_ones({self.counts[Site.EDGE]})"
        return f"leaves.segment_reduce({ones}, {side}, 0, {count}, 'sum')"

    def types(self) -> str:
        """How many types edges have: as weights with a block each have them."""
        arguments = self.program.arguments.values()
        found = (a.name for a in arguments if a.table == "etype")
        return next((f"{self.inputs[n]}.shape[0]" for n in found), "num_edge_types")

    def text_spread(self, v: Value) -> str:
        return self.spread(v.args[0], v.site)

    def spread(self, x: Value, site: Site) -> str:
        """A value with a row for each row of a site, where it is the same for all."""
        if x.site is not Site.ONE:
            return self.value(x)
        axes = "".join(", None" for _ in x.shape)
        ones = f"{self.like}.new_ones({self.counts[site]})"
        return f"{ones}[:{axes}] * {self.value(x)}" if axes else f"{ones} * {self.value(x)}"

    # ------------------------------------------------------------ rows

    def aligned(self, x: Value, shape: Shape) -> str:
        """A value with an axis of 1 where it lacks a width of a shape."""
        found = places(x.shape, shape)
        assert found is not None
        first = 0 if x.site is not Site.ONE else (found[0] if found else len(shape))
        axes = [":" if i in found else "None" for i in range(first, len(shape))]
        if "None" not in axes:
            return self.value(x)
        rows = [":"] if x.site is not Site.ONE else []
        return f"{self.value(x)}[{', '.join((*rows, *axes))}]"

    def text_pointwise(self, v: Value) -> str:
        fn, args = v.attrs["fn"], [self.aligned(x, v.shape) for x in v.args]
        if fn == "div" and is_degree(v.args[1]):
            return f"{args[0]} * (1.0 / {args[1]})"
        if fn in _OPERATORS:
            return f"{args[0]} {_OPERATORS[fn]} {args[1]}"
        parameters = "".join(f", {p!r}" for p in v.attrs["parameters"].values())
        return f"{'F' if fn in _FUNCTIONAL else 'torch'}.{fn}({', '.join(args)}{parameters})"

    def einsum(self, a: Value, left: str, b: Value, right: str, out: str) -> str:
        rows = [ROW if x.site is not Site.ONE else "" for x in (a, b)]
        spec = f"{rows[0]}{left},{rows[1]}{right}->{max(rows)}{out}"
        return f"torch.einsum({spec!r}, {self.value(a)}, {self.value(b)})"

    def text_matmul(self, v: Value) -> str:
        x, w = v.args
        shared: int = v.attrs["shared"]
        left = _LETTERS[: len(x.shape)]
        rest = _LETTERS[len(left) : len(left) + len(w.shape) - shared - 1]
        right = left[:shared] + left[-1] + rest
        return self.einsum(x, left, w, right, left[:-1] + rest)

    def text_dot(self, v: Value) -> str:
        wide, narrow = v.args
        left = _LETTERS[: len(wide.shape)]
        return self.einsum(wide, left, narrow, left[-len(narrow.shape) :], left[:-1])

    def text_flatten(self, v: Value) -> str:
        x = v.args[0]
        return f"{self.value(x)}.flatten({int(x.site is not Site.ONE)})"

    def text_concat(self, v: Value) -> str:
        parts = [self.value(x) if v.site is Site.ONE else self.spread(x, v.site) for x in v.args]
        return f"torch.cat([{', '.join(parts)}], -1)"

    def text_fold(self, v: Value) -> str:
        return f"torch.{_FOLDS[v.attrs['kind']]}({self.value(v.args[0])}, -1)"

    # ------------------------------------------------------------ edges

    def text_softmax(self, v: Value) -> str:
        x = self.spread(v.args[0], Site.EDGE)
        return f"leaves.segment_softmax({x}, dst, {self.counts[Site.DST]})"

    def text_reduce(self, v: Value) -> str:
        side, x = v.attrs["along"], self.spread(v.args[0], Site.EDGE)
        count = self.counts[Site.DST if side == "dst" else Site.SRC]
        return f"leaves.segment_reduce({x}, {side}, 0, {count}, {v.attrs['kind']!r})"
