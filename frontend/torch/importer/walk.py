"""The walk over an FX graph: every node gets its meaning, edits are followed, the rest refused."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from .context import Context
from .effects import Aliases, edited, has_effect, live_nodes, plain_name
from .errors import ImportCrash, NoRule, Reject, Unsupported, node_name
from .rules import RULES, Call
from .sizes import Sizes, expression
from .tensors import Arr, Sym, elem_of, numbers
from .values import Set

NOISE = {
    "_assert_scalar",
    "_assert_scalar.default",
    "_assert_async",
    "_check",
    "_check_is_size",
    "_log_api_usage_once",
    "Size",
    "sym_constrain_range_for_size",
}


@dataclass(frozen=True)
class Foreign:
    """A value that sets and rows cannot hold; only an error when something is computed from it."""

    node: fx.Node
    reason: str


@dataclass
class Walk:
    """The meaning of a graph: values of its outputs (`returned` are their nodes) and of the
    placeholders that it edits.

    With `tolerant` a node without a meaning becomes an unknown input and is noted in `refused`;
    otherwise it raises `Unsupported`. `float_masks`: see `Context`; `rows`: see `Sizes`.
    """

    graph: fx.Graph
    tolerant: bool = False
    float_masks: bool = True
    rows: AbstractSet[str] = frozenset()
    refused: dict[fx.Node, Unsupported] = field(default_factory=dict)
    returned: Any = None
    outputs: Any = None
    updates: dict[fx.Node, Arr] = field(default_factory=dict)
    placeholders: list[fx.Node] = field(default_factory=list)
    inputs: dict[fx.Node, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.context = Context(Sizes(self.graph, self.rows), self.float_masks)
        self.aliases = Aliases(self.graph)
        self.meaning: dict[fx.Node, Any] = {}
        self.sites = 0
        self.grad_mode = True

    def run(self) -> Walk:
        live = live_nodes(self.graph)
        for node in self.graph.nodes:
            if node.op == "output":
                self.returned = node.args[0]
                self.outputs = self.evaluate(self.returned)
            elif node in live:
                self.visit(node)
        return self

    def evaluate(self, x: Any) -> Any:
        """An argument of a node with nodes replaced by their meanings."""
        if isinstance(x, fx.Node):
            return self.meaning[x]
        if isinstance(x, slice):
            return slice(*(self.evaluate(b) for b in (x.start, x.stop, x.step)))
        if isinstance(x, dict):
            return {k: self.evaluate(v) for k, v in x.items()}
        if isinstance(x, torch.Size):
            return tuple(x)
        if isinstance(x, tuple | list):
            return type(x)(self.evaluate(y) for y in x)
        return x

    # ------------------------------------------------------------- one node

    def visit(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            self.placeholders.append(node)
        try:
            self.meaning[node] = self.understand(node)
            if node.op == "placeholder":
                self.inputs[node] = self.meaning[node]
        except NoRule as error:
            self.refuse(node, Unsupported(node, str(error), mutates=has_effect(node)))
        except Reject as error:
            raise Unsupported(node, str(error), mutates=True) from None
        except Unsupported:
            raise
        except Exception as error:
            crash = ImportCrash(node, error, mutates=has_effect(node))
            crash.__cause__ = error
            self.refuse(node, crash)

    def refuse(self, node: fx.Node, error: Unsupported) -> None:
        if not self.tolerant or error.mutates:
            raise error
        self.refused[node] = error
        self.meaning[node] = self.unknown(node)

    def understand(self, node: fx.Node) -> Any:
        value = node.meta.get("example_value")
        if node.op == "placeholder":
            return self.unknown(node)
        for source in node.all_input_nodes:
            if isinstance(foreign := self.meaning.get(source), Foreign):
                raise NoRule(f"its operand {foreign.node.target} is {foreign.reason}")
        if node.op == "get_attr":
            return self.attribute(node)
        name = node_name(node)
        if name == "_set_grad_enabled":
            self.grad_mode = bool(node.args[0])
            return None
        if name in NOISE:
            return None
        if not isinstance(value, Tensor | tuple | list) and value is not None:
            return self.scalar(node, name, value)
        return self.call(node, name, value)

    def scalar(self, node: fx.Node, name: str, value: Any) -> Any:
        """Arithmetic on sizes, which Dynamo has done; items of tensors give it new symbols."""
        if isinstance(value, torch.SymInt | torch.SymFloat):
            if name == "item":
                number = self.evaluate(node.args[0]).v  # a Python number has no gradient
                self.context.items[str(expression(value))] = self.context.values.stop(number)
            expr = self.context.sizes.canonical(expression(value))
            return int(expr) if expr.is_Integer else Sym(expression(value))  # half of a width
        return Sym(value.node.expr) if isinstance(value, torch.SymBool) else value

    def attribute(self, node: fx.Node) -> Any:
        target = self.graph.owning_module
        for part in str(node.target).split("."):
            target = getattr(target, part)
        if isinstance(target, Tensor):
            raise NoRule("a tensor that is stored in the graph")
        return target

    def call(self, node: fx.Node, name: str, value: Any) -> Any:
        base = edited(node)
        rule_name = name if name == "setitem" or base is None else plain_name(name)
        if node.kwargs.get("out") is not None:
            raise Reject("a result written to out=")
        if rule_name not in RULES:
            raise NoRule("gnnc has no rule for it" if base is None else "an edit without a rule")
        self.check_dtypes(node)
        if base is not None:
            self.aliases.check(node, base)
        args = tuple(self.evaluate(a) for a in node.args)
        kwargs = {k: self.evaluate(v) for k, v in node.kwargs.items()}
        call = Call(
            self.context, node, rule_name, args, kwargs, value, self.new_site, self.dropout_key
        )
        result = self.detached(RULES[rule_name](call))
        if base is not None and name != "setitem":
            old = self.meaning[base]
            result = self.context.cast(result, old.elem)
            self.check_result(node, result, value)
            self.edit(base, result)
            self.aliases.join(node, base)
        for edited_node, new in call.edits:
            self.edit(edited_node, self.detached(new))
        if base is None:
            self.check_result(node, result, value)
        return result

    def new_site(self) -> int:
        self.sites += 1
        return self.sites - 1

    def dropout_key(self) -> Arr:
        return Arr([], self.context.values.make("key", [], None, (), "i64"))

    def check_dtypes(self, node: fx.Node) -> None:
        for x in (node, *node.all_input_nodes):
            value = x.meta.get("example_value")
            for t in value if isinstance(value, tuple | list) else (value,):
                if isinstance(t, Tensor):
                    if t.dtype in (torch.float16, torch.bfloat16):
                        raise NoRule(f"{t.dtype}: gnnc compiles float32 and float64")
                    if t.is_complex():
                        raise NoRule("complex numbers")

    def detached(self, result: Any) -> Any:
        """Results under torch.no_grad carry no gradient."""
        if self.grad_mode:
            return result
        if isinstance(result, Arr):
            return Arr(result.dims, self.context.values.stop(result.v))
        if isinstance(result, tuple):
            return tuple(self.detached(r) for r in result)
        return result

    def edit(self, base: fx.Node, value: Arr) -> None:
        """From here on `base`, and what is the same tensor, has this value."""
        for node in self.aliases.identical(base):
            self.meaning[node] = value
            if node.op == "placeholder":
                self.updates[node] = value

    # ------------------------------------------------------------- inputs

    def unknown(self, node: fx.Node) -> Any:
        """A placeholder, or what a node without a meaning gave."""
        try:
            return self.wrap(node, node.meta.get("example_value"), None)
        except NoRule as error:
            return Foreign(node, str(error))

    def wrap(self, node: fx.Node, value: Any, item: int | None) -> Any:
        if isinstance(value, tuple | list):
            return tuple(self.wrap(node, v, i) for i, v in enumerate(value))
        if isinstance(value, torch.SymInt | torch.SymFloat):
            return Sym(expression(value))
        if not isinstance(value, Tensor):
            return value
        if value.layout is not torch.strided:
            raise NoRule("a sparse tensor: pass edge_index instead")
        if value.dtype in (torch.float16, torch.bfloat16):
            raise NoRule(f"of {value.dtype}: gnnc compiles float32 and float64")
        dims = self.context.sizes.dims(value)
        sets = [i for i, d in enumerate(dims) if isinstance(d, Set)]
        if len(sets) > 1:
            raise NoRule("a tensor with two dimensions that count rows")
        if any(d == 0 for d in dims if isinstance(d, int)):
            raise NoRule("a tensor with a dimension of size 0")
        axis = sets[0] if sets else None
        elem = elem_of(value.dtype)
        home = None if axis is None else dims[axis]
        v = self.context.values.make(
            "input", [], home, numbers(dims), elem, source=node.name, item=item, axis=axis
        )
        return Arr(list(dims), v)

    # ------------------------------------------------------------- self-checks

    def check_result(self, node: fx.Node, result: Any, value: Any) -> None:
        """A rule's result has the rank, widths and element type that torch's has."""
        pairs: Sequence[tuple[Any, Any]]
        if isinstance(value, tuple | list) and isinstance(result, tuple | list):
            pairs = list(zip(result, value, strict=True))
        else:
            pairs = [(result, value)]
        for r, t in pairs:
            if not isinstance(r, Arr) or not isinstance(t, Tensor):
                continue
            wanted = [int(d) if not isinstance(d, torch.SymInt) else None for d in t.shape]
            found = [d if isinstance(d, int) else None for d in r.dims]
            fits = len(wanted) == len(found) and all(
                w is None or f is None or w == f for w, f in zip(wanted, found, strict=True)
            )
            if not fits or r.elem != elem_of(t.dtype) or tuple(numbers(r.dims)) != r.v.shape:
                raise AssertionError(
                    f"importer: {node_name(node)} gave {r.dims} of {r.elem} (rows {r.v.shape}), "
                    f"torch has {list(t.shape)} of {t.dtype}"
                )
