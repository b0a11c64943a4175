"""What torch's functions, methods and operators accept: ATen's schemas, and tables of what no
schema says.

A `Signature` has the parameters of one overload in order, under the names that rules know: `self`
is `input`, and functions that only spell an argument otherwise have the name of the others.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """`keyword` is torch's name for it, `type` the schema's (`Tensor`, `Optional[List[int]]`);
    `one` tells that a single number stands for a list; `written`, that the call edits it."""

    name: str
    keyword: str
    type: str
    default: Any = REQUIRED
    keyword_only: bool = False
    written: bool = False
    one: bool = False


Signature = tuple[Parameter, ...]

NUMPY_NAMES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "a": "input",
    "x1": "input",
    "x2": "other",
}
"""What the parser of torch's builtin functions and methods takes for other names."""

_SAME_NAME = "add sub mul pow matmul eq ne lt le gt ge neg abs".split()

OPERATORS = {
    **{name: name for name in _SAME_NAME},
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "__lshift__",
    "rshift": "__rshift__",
    "pos": "positive",
    "invert": "bitwise_not",
}
"""Python's operators by the ops that tensors have for them."""

IN_PLACE_OPERATORS = {
    spelled: op
    for name, op in OPERATORS.items()
    if hasattr(operator, spelled := "i" + name.removesuffix("_"))
}

ITEMS = {"getitem": ("input", "index"), "setitem": ("input", "index", "value")}
"""Operators that no schema has."""

OTHER_NAMES = {
    "_new_index_select": "index_select",  # PyG's own torch.index_select
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "dsmm": "mm",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "logsigmoid": "log_sigmoid",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "special_erf": "erf",
    "special_erfinv": "erfinv",
    "sgn": "sign",
    "_sparse_mm": "mm",
    "special_exp2": "exp2",
    "special_expit": "sigmoid",
    "special_expm1": "expm1",
    "special_log1p": "log1p",
    "special_log_softmax": "log_softmax",
    "special_logsumexp": "logsumexp",
    "special_softmax": "softmax",
    "spmm": "mm",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
    "unsafe_chunk": "chunk",
    "unsafe_split": "split",
    "_get_data_attr": "data",
}
"""Functions that are others by another name."""

_RENAMED = {
    ("bmm", "mat2"): "other",
    ("dot", "tensor"): "other",
    ("dropout", "train"): "training",
    ("feature_dropout", "train"): "training",
    ("index_add", "source"): "src",
    ("index_copy", "source"): "src",
    ("index_reduce", "source"): "src",
    ("mm", "dense"): "other",
    ("mm", "mat2"): "other",
    ("mm", "sparse"): "input",
    ("mv", "vec"): "other",
    ("outer", "vec2"): "other",
    ("split", "split_size_or_sections"): "split_size",
    ("split", "split_sizes"): "split_size",
    ("split", "tensor"): "input",
    ("to", "tensor"): "other",
    ("transpose", "axis0"): "dim0",
    ("transpose", "axis1"): "dim1",
}
"""Arguments of one meaning that an op's functions and methods name differently."""

_OWN = {
    name: tuple(f"f({text}) -> Tensor" for text in texts)
    for name, texts in {
        "to": (
            "Tensor self, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, "
            "bool copy=False, *, MemoryFormat? memory_format=None",
            "Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, *, "
            "MemoryFormat? memory_format=None",
            "Tensor self, Tensor tensor, bool non_blocking=False, bool copy=False, *, "
            "MemoryFormat? memory_format=None",
        ),
        "type": (
            "Tensor self, ScalarType dtype, bool non_blocking=False",
            "Tensor self, str dtype, bool non_blocking=False",
        ),
        "nonzero": ("Tensor self, *, bool as_tuple=False",),
        "tensor": (
            "t data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False, "
            "bool pin_memory=False",
        ),
        "as_tensor": ("t data, ScalarType? dtype=None, Device? device=None",),
        "_get_data_attr": ("Tensor self",),
        # functions of sparse matrices, which take dense ones too
        **dict.fromkeys(("spmm", "dsmm"), ("Tensor self, Tensor mat2",)),
        **dict.fromkeys(
            ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool"),
            ("Tensor self, MemoryFormat? memory_format=None",),
        ),
    }.items()
}
"""Functions and methods whose schemas are not what Python accepts, or that have none."""

_DEPRECATED = {
    "add": ("Tensor self, Scalar alpha, Tensor other",),
    "sub": ("Tensor self, Scalar alpha, Tensor other",),
    "addcmul": ("Tensor self, Scalar value, Tensor tensor1, Tensor tensor2",),
    "addcdiv": ("Tensor self, Scalar value, Tensor tensor1, Tensor tensor2",),
    **{
        name: (
            f"Scalar beta, Tensor self, Scalar alpha, Tensor {a}, Tensor {b}",
            f"Scalar beta, Tensor self, Tensor {a}, Tensor {b}",
        )
        for name, a, b in (
            ("addmm", "mat1", "mat2"),
            ("sspaddmm", "mat1", "mat2"),
            ("addmv", "mat", "vec"),
            ("addr", "vec1", "vec2"),
            ("addbmm", "batch1", "batch2"),
            ("baddbmm", "batch1", "batch2"),
        )
    },
}
"""Orders of arguments that torch's parser takes beside those of the schemas."""

_NOT_IN_PYTHON = {
    *((n + s, "Scalar") for n in ("add", "sub", "mul", "div") for s in ("", "_")),
    *(("copy_", overload) for overload in ("Tensor", "int", "float")),
}
"""Overloads that only other languages see."""


def plain_name(spelled: str) -> str:
    """The op of a function's or method's name: `add` of `add_`, `div` of `true_divide`."""
    private = spelled.endswith("__") or spelled == "requires_grad_"  # no edit of numbers
    op = spelled if private else spelled.removesuffix("_")
    return OTHER_NAMES.get(op, op)


def named(op: str, parameter: str) -> str:
    """The name under which rules know a parameter."""
    return "input" if parameter == "self" else _RENAMED.get((op, parameter), parameter)


@functools.cache
def of_builtin(spelled: str) -> tuple[Signature, ...]:
    """The signatures of a builtin function or method, in the order in which they are tried."""
    op = plain_name(spelled)
    if spelled in _OWN:
        return tuple(of_schema(op, torch._C.parse_schema(text)) for text in _OWN[spelled])
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{spelled}")
    out = [_with_no_reduction(of_schema(op, s)) for s in schemas if _is_for_python(spelled, s)]
    for text in _DEPRECATED.get(spelled.removesuffix("_"), ()):
        if spelled.endswith("_"):
            text = text.replace("Tensor self", "Tensor(a!) self")
        out.append(of_schema(op, torch._C.parse_schema(f"f({text}) -> Tensor")))
    return tuple(out)


def _with_no_reduction(signature: Signature) -> Signature:
    """The signature with the default that the parser of torch's builtin functions has for
    `reduction`: it reads the name of a mean as the number 0, which is none."""
    return tuple(
        replace(p, default=0) if p.name == "reduction" and p.default is not REQUIRED else p
        for p in signature
    )


def _is_for_python(spelled: str, schema: Any) -> bool:
    """Whether an overload is one of tensors that Python calls without `out=` (which is bound apart:
    it is the same in all of them)."""
    types = [str(a.real_type) for a in schema.arguments]
    return (
        (spelled, schema.overload_name) not in _NOT_IN_PYTHON
        and any("Tensor" in t for t in (*types, *(str(r.type) for r in schema.returns)))
        and not any("Dimname" in t for t in types)
        and not any(a.kwarg_only and _is_written(a) for a in schema.arguments)
    )


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def of_schema(op: str, schema: Any) -> Signature:
    """The signature that a schema of ATen's says."""
    out = [
        Parameter(
            named(op, a.name),
            "input" if a.name == "self" else a.name,
            str(a.real_type),
            a.default_value if a.has_default_value() else REQUIRED,
            a.kwarg_only,
            _is_written(a) and op != "requires_grad_",
            a.N is not None,
        )
        for a in schema.arguments
    ]
    names = [p.name for p in out]
    if "pin_memory" in names and "requires_grad" not in names:  # a factory, as Python has it
        out.append(Parameter("requires_grad", "requires_grad", "bool", False, keyword_only=True))
    return tuple(out)


@functools.cache
def of_python(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function that is written in Python."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
