"""The importer's first stage: every captured call as one op with all its arguments named.

`canonical(node)` says of a call, however it was spelled (function, method, operator, in-place or
`out=` form; arguments by position, by keyword or by NumPy's names), which op it is, what each of
the op's arguments is, and which tensors it writes to:

    call = canonical(node)                      # of F.relu(h, True)
    call.op                                     # "relu"
    call.arguments                              # {"input": h, "inplace": True}, h an fx.Node
    call.set_apart()                            # {"input", "inplace"}: not at their defaults
    call.edits, call.edited                     # ("input",), (h,)

Arguments are bound as torch binds them: by ATen's schemas for builtin functions and methods, by
Python's signatures for functions written in Python, by the tables of schemas.py for the rest. A
call that fits no signature has a `fault` and no arguments; what it may edit is known all the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx
from torch._dynamo.utils import numpy_to_tensor_wrapper

from .schemas import (
    IN_PLACE_OPERATORS,
    ITEMS,
    NUMPY_NAMES,
    OPERATORS,
    REQUIRED,
    Parameter,
    Signature,
    named,
    of_builtin,
    of_python,
    of_schema,
    plain_name,
)


@dataclass(frozen=True)
class Canonical:
    """A call of `op`.

    `arguments` are fx nodes or constants, with defaults filled in (`defaults` has those that there
    are). `edits` names the arguments that it writes to, `edited` has their nodes. `spelled` is how
    the user called it, `fault` why its arguments could not be bound.
    """

    op: str
    spelled: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    edits: tuple[str, ...] = ()
    edited: tuple[fx.Node, ...] = ()
    fault: str | None = None

    def set_apart(self) -> frozenset[str]:
        """The arguments that are not at their defaults."""
        return frozenset(n for n, v in self.arguments.items() if not self._is_default(n, v))

    def _is_default(self, name: str, value: Any) -> bool:
        if name not in self.defaults or isinstance(value, fx.Node):
            return False
        default = self.defaults[name]
        if type(value) is bool or type(default) is bool:
            return value is default
        return bool(value == default)


def canonical(node: fx.Node) -> Canonical | None:
    """What a node calls; None for a node that calls nothing."""
    if node.op == "call_method":
        name = str(node.target)
        if inspect.isfunction(method := getattr(Tensor, name, None)):
            return _of_python(name, f"Tensor.{name}", method, node)
        return _of_builtin(name, f"Tensor.{name}", node, is_method=True)
    if node.op == "call_function":
        return _of_function(node.target, node)
    if node.op == "call_module":
        return _unbound("module", str(node.target), node, "a module that Dynamo left in the graph")
    return None


def _of_function(target: Any, node: fx.Node) -> Canonical:
    if isinstance(target, torch._ops.OpOverload):
        return _of_overloads(target.overloadpacket, (target,), node)
    if isinstance(target, torch._ops.OpOverloadPacket):
        overloads = tuple(getattr(target, name) for name in target.overloads())
        return _of_overloads(target, overloads, node)
    name = getattr(target, "__name__", str(target))
    if isinstance(target, numpy_to_tensor_wrapper) and _all_numbers(node):
        return _bound("tensor", name, {"data": target(*node.args, **node.kwargs).tolist()}, {}, ())
    if isinstance(target, numpy_to_tensor_wrapper) and _is_of_a_size(node):
        function = name.removeprefix("wrapped_")
        return _bound(f"numpy.{function}", f"np.{function}", {"input": node.args[0]}, {}, ())
    if name == "_get_data_attr":  # Dynamo's `x.data`
        return _of_builtin("detach", "Tensor.data", node)
    module = getattr(target, "__module__", None) or ""
    if target is getattr:  # `x.T` is an op of one argument
        x, attribute = node.args[:2]
        return _bound(str(attribute), f"Tensor.{attribute}", {"input": x}, {}, ())
    if module in ("_operator", "builtins"):
        return _of_operator(name, node)
    if inspect.isfunction(target) and (_is_torch(module) or name == "_new_index_select"):
        short = "F" if module == "torch.nn.functional" else "torch"
        return _of_python(name, f"{short}.{name}", target, node)
    if inspect.isbuiltin(target) and _is_torch(module):
        return _of_builtin(name, f"torch.{name}", node)
    return _unbound(name, name, node, "a function that gnnc does not know")


def _all_numbers(node: fx.Node) -> bool:
    """Whether a function of NumPy is of numbers alone: Dynamo leaves it in the graph, and what it
    gives is a tensor of torch."""
    return all(type(x) in (int, float, bool) for x in (*node.args, *node.kwargs.values()))


def _is_of_a_size(node: fx.Node) -> bool:
    """Whether a function of NumPy is of one number, which may be another in the next call."""
    number = _example(node.args[0]) if len(node.args) == 1 and not node.kwargs else None
    return isinstance(number, torch.SymInt | torch.SymFloat)


def _is_torch(module: str) -> bool:
    return module == "torch" or module.startswith("torch.")


# ---------------------------------------------------------------- the ways to spell a call


def _of_operator(name: str, node: fx.Node) -> Canonical:
    """Operators bind as the tensors' functions do; those of sizes and tuples by position alone."""
    spelled, in_place = f"operator.{name}", name in IN_PLACE_OPERATORS
    op = IN_PLACE_OPERATORS.get(name) or OPERATORS.get(name)
    if name in ITEMS:
        edits = ("input",) if name == "setitem" else ()
        return _bound(name, spelled, dict(zip(ITEMS[name], node.args, strict=False)), {}, edits)
    if op is None:
        return _unbound(name, spelled, node, "a function that gnnc does not know")
    x = _example(node.args[0])
    edits = ("input",) if in_place and (x is _UNKNOWN or isinstance(x, Tensor)) else ()
    found = _first_fit(of_builtin(op), node.args, {}, is_method=False)
    if found is None:
        names = ("input", "exponent" if op == "pow" else "other")
        return _bound(op, spelled, dict(zip(names, node.args, strict=False)), {}, edits)
    values, signature = found
    return _bound(op, spelled, values, _defaults(signature), edits)


def _of_overloads(packet: Any, overloads: Sequence[Any], node: fx.Node) -> Canonical:
    namespace, _, name = packet._qualified_op_name.partition("::")
    op = plain_name(name) if namespace == "aten" else f"{namespace}.{name}"
    signatures = [of_schema(op, o._schema) for o in overloads]
    return _of_signatures(op, f"torch.ops.{namespace}.{name}", signatures, node)


def _of_builtin(name: str, spelled: str, node: fx.Node, is_method: bool = False) -> Canonical:
    return _of_signatures(plain_name(name), spelled, of_builtin(name), node, is_method)


def _of_signatures(
    op: str,
    spelled: str,
    signatures: Sequence[Signature],
    node: fx.Node,
    is_method: bool = False,
) -> Canonical:
    kwargs = dict(node.kwargs)
    own = any(p.name == "out" for s in signatures for p in s)
    written = None if own else kwargs.pop("out", None)
    found = _first_fit(signatures, node.args, kwargs, is_method)
    if found is None:
        return _unbound(op, spelled, node, f"its arguments fit no signature of {spelled}")
    values, signature = found
    edits = tuple(p.name for p in signature if p.written)
    if written is not None:
        values, edits = {**values, "out": written}, (*edits, "out")
    return _bound(op, spelled, values, _defaults(signature), edits)


def _of_python(name: str, spelled: str, function: Callable[..., Any], node: fx.Node) -> Canonical:
    op, signature = plain_name(name), of_python(function)
    try:
        if signature is None:
            raise TypeError
        bound = signature.bind(*node.args, **node.kwargs)
    except TypeError:
        return _unbound(op, spelled, node, f"its arguments do not fit {spelled}")
    bound.apply_defaults()
    values = {named(op, n): v for n, v in bound.arguments.items()}
    parameters = signature.parameters.values()
    defaults = {named(op, p.name): p.default for p in parameters if p.default is not REQUIRED}
    edits = ("input",) if name.endswith("_") or values.get("inplace") not in (None, False) else ()
    if values.get("out") is not None:
        edits = (*edits, "out")
    return _bound(op, spelled, values, defaults, edits)


def _bound(
    op: str,
    spelled: str,
    values: Mapping[str, Any],
    defaults: Mapping[str, Any],
    edits: tuple[str, ...],
) -> Canonical:
    edits = (*edits, *_unannotated_edits(op, values))
    return Canonical(op, spelled, values, defaults, edits, _nodes([values[e] for e in edits]))


def _unbound(op: str, spelled: str, node: fx.Node, fault: str) -> Canonical:
    """What such a call may edit goes by its name and by the arguments that say so."""
    written = [node.kwargs.get("out")]
    in_place = spelled.endswith("_") and not spelled.endswith("__")
    if in_place or node.kwargs.get("inplace") not in (None, False):
        written.append(node.args[0] if node.args else node.kwargs.get("input"))
    return Canonical(op, spelled, edited=_nodes(written), fault=fault)


def _nodes(values: Sequence[Any]) -> tuple[fx.Node, ...]:
    out: list[fx.Node] = []
    for v in values:
        if isinstance(v, fx.Node):
            out.append(v)
        elif isinstance(v, tuple | list):
            out.extend(_nodes(v))
    return tuple(out)


def _unannotated_edits(op: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments that an op writes to without that its signature says so."""
    statistics = {"batch_norm": "training", "instance_norm": "use_input_stats"}
    if op in statistics and values.get(statistics[op]) not in (None, False):
        names = ("running_mean", "running_var")
        return tuple(n for n in names if values.get(n) is not None)
    if op in ("embedding", "embedding_bag") and values.get("max_norm") is not None:
        return ("weight",)
    return ()


def _defaults(signature: Signature) -> dict[str, Any]:
    return {p.name: p.default for p in signature if p.default is not REQUIRED}


# ---------------------------------------------------------------- binding


def _first_fit(
    signatures: Sequence[Signature],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    is_method: bool,
) -> tuple[dict[str, Any], Signature] | None:
    """The arguments by name in the first signature that they fit. Only where they fit none a number
    may be a tensor, and a tensor of no dimension a number."""
    for lenient in (False, True):
        for signature in signatures:
            values = _bind(signature, args, kwargs, is_method, lenient)
            if values is not None:
                return values, signature
    return None


def _bind(
    signature: Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    is_method: bool,
    lenient: bool,
) -> dict[str, Any] | None:
    positional = [p for p in signature if not p.keyword_only]
    if is_method:  # of its tensor, wherever the function has that
        positional.sort(key=lambda p: p.name != "input")
    args = _numbers_joined(positional, args, 1 if is_method else 0)
    if len(args) > len(positional):
        return None
    values = {p.name: a for p, a in zip(positional, args, strict=False)}
    names = {p.keyword: p.name for p in signature}
    for key, value in kwargs.items():
        name = names.get(key) or names.get(NUMPY_NAMES.get(key, ""))
        if name is None or name in values:
            return None
        values[name] = value
    for p in signature:
        if p.name not in values:
            if p.default is REQUIRED:
                return None
            values[p.name] = p.default
        elif not _fits(p, values[p.name], lenient):
            return None
    return values


def _numbers_joined(
    positional: Sequence[Parameter], args: Sequence[Any], first: int
) -> Sequence[Any]:
    """`x.permute(1, 0)` is `x.permute((1, 0))`, where the numbers are all that there is."""
    rest = args[first:]
    lone = len(positional) == first + 1 and positional[first].type == "List[int]"
    if lone and rest and all(_fits_type("int", _example(a), False) for a in rest):
        return [*args[:first], list(rest)]
    return args


_UNKNOWN = object()
"""The example of a node that has none."""


def _example(x: Any) -> Any:
    return x.meta.get("example_value", _UNKNOWN) if isinstance(x, fx.Node) else x


def _fits(p: Parameter, value: Any, lenient: bool) -> bool:
    value = _example(value)
    if value is None and p.default is None:
        return True
    if p.one and _fits_type("int", value, lenient):
        return True
    return _fits_type(p.type, value, lenient)


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor,),
    "number": (bool, int, float, complex, torch.SymInt, torch.SymFloat, torch.SymBool),
    "int": (int, torch.SymInt),
    "float": (int, float, torch.SymInt, torch.SymFloat),
    "bool": (bool, torch.SymBool),
    "str": (str,),
    "ScalarType": (torch.dtype,),
    "Layout": (torch.layout,),
    "MemoryFormat": (torch.memory_format,),
    "Device": (torch.device, str, int),
    "Generator": (torch.Generator,),
}


def _fits_type(wanted: str, value: Any, lenient: bool) -> bool:
    """Whether a value may be an argument of a schema's type."""
    if value is _UNKNOWN or wanted in ("", "t"):
        return True
    if wanted.startswith("Optional["):
        return value is None or _fits_type(wanted[9:-1], value, lenient)
    if wanted.startswith("List["):
        inner = wanted[5:-1]
        return isinstance(value, tuple | list) and all(
            _fits_type(inner, _example(v), lenient) for v in value
        )
    if isinstance(value, bool) and wanted in ("int", "float", "Device"):
        return False
    if lenient and wanted == "Tensor" and _fits_type("number", value, False):
        return True
    if lenient and wanted in ("number", "int", "float") and isinstance(value, Tensor):
        return value.dim() == 0
    return isinstance(value, _PYTHON_TYPES.get(wanted, ()))
