"""The walk over an FX graph: every node gets its meaning, edits are followed, the rest refused."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from .binding import Mask
from .errors import ImportCrash, NoRule, Reject, Unsupported, node_name
from .memory.aliases import Aliases
from .memory.edits import (
    assigns_itself,
    carried_back,
    carried_back_from_item,
    check_attached,
    check_operands,
)
from .memory.effects import (
    GRAD_MODE,
    RESHAPING,
    call_of,
    draws,
    edited,
    has_effect,
    is_assertion,
    written,
)
from .memory.history import GradModes, is_unrecorded_view, reason_to_keep, takes_part
from .parts.live import live_nodes
from .rules import RULES, Call
from .values.context import Context
from .values.elements import INTEGERS
from .values.held import Held, exception_named
from .values.nodes import Set
from .values.sizes import Sizes, example, expression, tensors_in
from .values.tensors import Arr, Merge, Sym, elem_of, numbers

NOISE = {
    *("_assert_scalar", "_assert_scalar.default", "_check", "_check_is_size"),
    *("_log_api_usage_once", "sym_constrain_range_for_size"),
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
    otherwise it raises `Unsupported`. So does each node of `outside`, which torch will run, and
    what it edits. `float_masks`: see `Context`; `rows`: see `Sizes`. `masks` are those of dropout
    (see `Imported`).
    """

    graph: fx.Graph
    tolerant: bool = False
    float_masks: bool = True
    rows: AbstractSet[str] = frozenset()
    outside: AbstractSet[fx.Node] = frozenset()
    refused: dict[fx.Node, Unsupported] = field(default_factory=dict)
    returned: Any = None
    outputs: Any = None
    updates: dict[fx.Node, Arr] = field(default_factory=dict)
    placeholders: list[fx.Node] = field(default_factory=list)
    inputs: dict[fx.Node, Any] = field(default_factory=dict)
    masks: dict[str, Mask | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.context = Context(Sizes(self.graph, self.rows), self.float_masks)
        self.aliases = Aliases(self.graph)
        self.modes = GradModes(self.graph)
        self.meaning: dict[fx.Node, Any] = {}
        # views of what was edited, with the edit: they are made again when they are read
        self.stale: dict[fx.Node, fx.Node] = {}
        self.sites = 0

    def run(self) -> Walk:
        live = live_nodes(self.graph, self.aliases)
        for node in self.graph.nodes:
            if node_name(node) in RESHAPING and node not in self.outside:
                raise Unsupported(node, "it changes the shape of a tensor in place", mutates=True)
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
            return self.read(x)
        if isinstance(x, slice):
            return slice(*(self.evaluate(b) for b in (x.start, x.stop, x.step)))
        if isinstance(x, dict):
            return {k: self.evaluate(v) for k, v in x.items()}
        if isinstance(x, torch.Size):
            return tuple(x)
        if isinstance(x, tuple | list):
            return type(x)(self.evaluate(y) for y in x)
        return x

    def read(self, node: fx.Node) -> Any:
        """What a node's value is by now."""
        node = self.aliases.itself(node)
        edit = self.stale.pop(node, None)
        if edit is not None:
            again = node not in self.refused and node not in self.outside
            self.meaning[node] = self.understand(node) if again else self.unknown(node, edit)
        return self.meaning[node]

    # ------------------------------------------------------------- one node

    def visit(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            self.placeholders.append(node)
        if node in self.outside:
            self.leave(node)
            return
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

    def leave(self, node: fx.Node) -> None:
        """Torch runs a node: neither what it gives nor what it edits is known from here on."""
        self.meaning[node] = self.unknown(node)
        for base in written(node):
            for other in self.aliases.alike(base):
                if other in self.meaning:
                    self.meaning[other] = self.unknown(other, node)
                    self.stale.pop(other, None)

    def understand(self, node: fx.Node) -> Any:
        values = self.context.values
        before, values.source = values.source, node
        try:
            return self.meaning_of(node)
        finally:
            values.source = before

    def meaning_of(self, node: fx.Node) -> Any:
        value = node.meta.get("example_value")
        if node.op == "placeholder":
            return self.unknown(node)
        for source in node.all_input_nodes:
            if isinstance(foreign := self.meaning.get(source), Foreign):
                raise NoRule(f"its operand {node_name(foreign.node)} is {foreign.reason}")
        if node.op == "get_attr":
            return self.attribute(node)
        name = node_name(node)
        if name == GRAD_MODE:
            return None
        if is_assertion(node):
            return self.assertion(node)
        if name in NOISE:
            return None
        if name == "Size":
            return tuple(self.evaluate(node.args[0]))
        if not isinstance(value, Tensor | tuple | list) and value is not None:
            return self.scalar(node, name, value)
        return self.call(node, value)

    def assertion(self, node: fx.Node) -> None:
        """A tensor that has to hold is a result of the program, which the caller looks at."""
        condition = self.evaluate(node.args[0])
        if not isinstance(condition, Arr) or condition.home is not None:
            raise NoRule("an assertion of more than one number")
        message = node.args[1] if len(node.args) > 1 else node.kwargs.get("assert_msg", "")
        raised = exception_named(str(node.args[2])) if len(node.args) > 2 else AssertionError
        self.context.assertions.append(Held(condition, str(message), raised))

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

    def call(self, node: fx.Node, value: Any) -> Any:
        base, form = edited(node), call_of(node)
        if "out" in form.edits:
            raise Reject("a result written to out=")
        if form.fault is not None:
            raise NoRule(form.fault)
        if form.op not in RULES:
            if draws(node):
                raise NoRule("random numbers that torch draws")
            raise NoRule("gnnc has no rule for it" if base is None else "an edit without a rule")
        self.check_dtypes(node)
        if self.modes.turned_on(node):
            raise NoRule("autograd records it in a call under no_grad")
        if form.op == "setitem" and assigns_itself(node, self.aliases):
            return None
        check_operands(node, self.aliases)
        if is_unrecorded_view(node, self.aliases, self.modes):
            raise NoRule("a view made under no_grad of what has a gradient")
        call, sites = self.view_of(node), self.sites
        result = self.detached(node, RULES[form.op](call))
        call.refuse_unread()
        if self.sites > sites:
            self.masks[node.name] = self.mask(result, sites)
        if base is not None and form.op != "setitem":
            result = self.context.cast(result, self.read(base).elem)
            self.check_result(node, result, value)
            self.follow(node, base, result)
        for edited_node, new in call.edits:
            self.follow(node, edited_node, self.detached(node, new))
        if base is None:
            self.check_result(node, result, value)
        return result

    def view_of(self, node: fx.Node) -> Call:
        """A node as rules see it."""
        form = call_of(node)
        arguments = {name: self.evaluate(x) for name, x in form.arguments.items()}
        return Call(
            self.context, node, form, arguments, example(node), self.new_site, self.dropout_key
        )

    def new_site(self) -> int:
        self.sites += 1
        return self.sites - 1

    def mask(self, result: Any, sites: int) -> Mask | None:
        """The mask that a node drew, when there were so many sites before it."""
        if self.sites > sites + 1 or not isinstance(result, Arr):
            return None
        merge = next((d for d in result.dims if isinstance(d, Merge)), None)
        if merge is None:
            return Mask(sites, result.axis, 1)
        return Mask(sites, result.axis, merge.k, merge.within)

    def dropout_key(self) -> Arr:
        return Arr([], self.context.values.make("key", [], None, (), "i64"))

    def check_dtypes(self, node: fx.Node) -> None:
        for x in (node, *node.all_input_nodes):
            for t in tensors_in(example(x)):
                if t.dtype in (torch.float16, torch.bfloat16):
                    raise NoRule(f"{t.dtype}: gnnc compiles float32 and float64")
                if t.is_complex():
                    raise NoRule("complex numbers")

    def detached(self, node: fx.Node, result: Any) -> Any:
        """Results under torch.no_grad carry no gradient."""
        if self.modes.at[node]:
            return result
        if isinstance(result, Arr):
            return self.context.flat(result)
        if isinstance(result, tuple):
            return tuple(self.detached(node, r) for r in result)
        return result

    def hides_history(self) -> bool:
        """Whether an example shows no history where the tensor has one."""
        return self.modes.hides_history

    # ------------------------------------------------------------- edits

    def follow(self, node: fx.Node, base: fx.Node, value: Arr) -> None:
        """From here on `base`, which `node` edits, has this value, and all that lies in the same
        memory has what follows from it."""
        reason = reason_to_keep(node, base, self.aliases, self.modes)
        if reason is not None:
            raise Reject(reason)
        chain = self.aliases.chain(base)
        root = chain[0]
        if root.op == "get_attr":
            raise Reject("it edits a tensor that is stored in the graph")
        views = self.aliases.views(root, node)
        new = self.carried_back(chain, value)
        if self.modes.records and takes_part(root):
            check_attached(self.read(root), new[root], root)
        self.check_result(root, new[root], example(root))
        self.stale |= dict.fromkeys(views, node)
        for n, x in new.items():
            self.stale.pop(n, None)
            self.meaning[n] = x
        if root.op == "placeholder":
            self.updates[root] = new[root]

    def carried_back(self, chain: Sequence[fx.Node], value: Arr) -> dict[fx.Node, Arr]:
        """New values of the tensors of a chain of views, from that of its last one."""
        new = {chain[-1]: value}
        views = list(chain)
        while len(views) > 1:
            view = views.pop()
            if isinstance(example(views[-1]), tuple | list):  # one of several views
                call = self.view_of(views.pop())
                value = carried_back_from_item(call, view.args[1], self.read(views[-1]), value)
            else:
                value = carried_back(self.view_of(view), self.read(views[-1]), value)
            new[views[-1]] = value
        return new

    # ------------------------------------------------------------- inputs

    def unknown(self, node: fx.Node, edit: fx.Node | None = None) -> Any:
        """A placeholder, or what a node without a meaning gave, or an edit that torch makes has
        left."""
        try:
            return self.wrap(node, example(node), None, edit)
        except NoRule as error:
            return Foreign(node, str(error))

    def wrap(self, node: fx.Node, value: Any, item: int | None, edit: fx.Node | None) -> Any:
        if isinstance(value, tuple | list):
            return tuple(self.wrap(node, v, i, edit) for i, v in enumerate(value))
        if isinstance(value, torch.SymInt | torch.SymFloat):
            expr = expression(value)  # an argument that a dimension was looked up by is constant
            return int(expr) if expr.is_Integer else Sym(expr)
        if not isinstance(value, Tensor):
            return value
        if value.layout is not torch.strided:
            raise NoRule("a sparse tensor (as an argument of the call it is compiled)")
        if value.dtype in (torch.float16, torch.bfloat16):
            raise NoRule(f"of {value.dtype}: gnnc compiles float32 and float64")
        dims = self.context.sizes.dims(value)
        sets = [i for i, d in enumerate(dims) if isinstance(d, Set)]
        if len(sets) > 1:
            raise NoRule("a tensor with two dimensions that count rows")
        elem = elem_of(value.dtype)
        if any(d == 0 for d in dims if isinstance(d, int)):
            if sets or elem not in INTEGERS:
                raise NoRule("a tensor with a dimension of size 0")
            # an index that names nothing, without a gradient that somebody may ask for
            return Arr(list(dims), self.context.values.const(0, elem, numbers(dims)))
        axis = sets[0] if sets else None
        home = None if axis is None else dims[axis]
        attrs = {"source": node.name, "item": item, "axis": axis}
        attrs |= {} if edit is None else {"edit": edit.name}
        v = self.context.values.make("input", [], home, numbers(dims), elem, **attrs)
        return Arr(list(dims), v)

    # ------------------------------------------------------------- self-checks

    def check_result(self, node: fx.Node, result: Any, value: Any) -> None:
        """A rule's result has the rank, widths and element type that torch's has."""
        several = isinstance(value, tuple | list) and isinstance(result, tuple | list)
        for r, t in zip(result, value, strict=True) if several else [(result, value)]:
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
