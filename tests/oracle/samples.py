"""The samples of torch's operator database, by op, way of calling it and dtype."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch import Tensor

from gnnc.frontend.torch.importer.rules import RULES

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool)

SHORT = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.bool: "bool"}

# what they give is drawn, or not defined at all: only shapes and dtypes can be compared
UNDEFINED = {
    *("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"),
    *("randn", "randn_like", "rand_like", "randint", "randint_like", "normal", "bernoulli"),
    *("multinomial", "uniform", "exponential", "geometric", "cauchy", "log_normal"),
    *("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d"),
    *("nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout"),
    *("nn.functional.rrelu", "nn.functional.scaled_dot_product_attention"),
    *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
    *("svd_lowrank", "pca_lowrank", "nn.functional.multi_head_attention_forward"),
}

SINGLE = {"nn.functional.hardsigmoid"}
"""Whose float64 gradient is one of float32 in torch (a sixth is)."""

# torch itself crashes on these where Dynamo takes sizes of 0 for any size
CRASHES = {("nn.functional.batch_norm", 3), ("nn.functional.batch_norm", 4)}


@functools.cache
def database() -> dict[str, Any]:
    """The ops of torch's database by their full names. Takes seconds: it is imported when asked
    for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {op.full_name: op for op in op_db}


@dataclass(frozen=True)
class Variant:
    """A way to call an op: `label` says which; a `name` is that of a method of the first operand,
    a `function` takes it as the first argument. `in_place`: it edits that operand."""

    label: str
    name: str = ""
    function: Callable[..., Any] | None = None
    in_place: bool = False


@dataclass(frozen=True)
class Case:
    """One sample of one op, called one way."""

    op: Any
    variant: Variant
    dtype: torch.dtype
    number: int
    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.op.full_name}[{self.variant.label}, {SHORT[self.dtype]}, {self.number}]"

    @property
    def tensors(self) -> list[Tensor]:
        leaves = torch.utils._pytree.tree_leaves((self.input, self.args, self.kwargs))
        return [x for x in leaves if isinstance(x, Tensor)]


def variants(op: Any) -> list[Variant]:
    """The ways to call an op, its own name first, then those of its aliases."""
    found: dict[tuple[str, str], Variant] = {}
    for source, prefix in [(op, ""), *((a, f"{a.name} ") for a in op.aliases)]:
        for kind in ("op", "method_variant", "inplace_variant"):
            v = _variant(prefix, kind, getattr(source, kind, None))
            if v is not None:
                found.setdefault((kind, v.name or str(v.function)), v)
    for kind in ("operator_variant", "inplace_operator_variant"):
        v = _variant("", kind, getattr(op, kind, None))
        if v is not None:
            found.setdefault((kind, str(v.function)), v)
    return list(found.values())


def _variant(prefix: str, kind: str, function: Any) -> Variant | None:
    if function is None:
        return None
    label = prefix + {"op": "function"}.get(kind, kind.removesuffix("_variant").replace("_", " "))
    in_place = kind.startswith("inplace")
    is_function = isinstance(function, FunctionType | BuiltinFunctionType)
    if is_function and not (kind != "op" and hasattr(torch.Tensor, function.__name__)):
        return Variant(label, function=function, in_place=in_place)
    name = getattr(function, "__name__", "")
    if kind == "op":  # a method that stands for a function
        return Variant(label, function=function)
    if kind.endswith("operator_variant"):
        return Variant(label, function=function, in_place=in_place)
    return Variant(label, name=name, in_place=in_place)


def names(op: Any) -> set[str]:
    """The names under which a rule for an op may stand."""
    found: set[str] = set()
    for name in (op.name, op.aten_name, *(a.name for a in op.aliases)):
        if not name.startswith("masked."):
            found |= {name, name.split(".")[-1], name.replace(".", "_"), name.strip("_")}
    return found


def has_rule(op: Any) -> bool:
    return bool(names(op) & RULES.keys())


def dtypes(op: Any) -> list[torch.dtype]:
    """Those of ours that an op takes on the CPU."""
    return [d for d in DTYPES if d in op.dtypes]


def cases(op: Any, dtype: torch.dtype, variant: Variant) -> Iterator[Case]:
    """The samples of an op, the same at every call."""
    for number, s in enumerate(_samples(op.full_name, dtype)):
        if (op.name, number) in CRASHES:
            continue
        if variant.in_place and (s.broadcasts_input or not isinstance(s.input, Tensor)):
            continue
        if variant.name and not isinstance(s.input, Tensor):
            continue
        yield Case(op, variant, dtype, number, s.input, tuple(s.args), dict(s.kwargs))


def spread(found: Sequence[Case], count: int) -> list[Case]:
    """As many of the cases, from all parts of their list: samples of a kind stand together."""
    step = max(1.0, len(found) / count)
    return [found[int(k * step)] for k in range(min(count, len(found)))]


def error_cases(op: Any) -> Iterator[Case]:
    """Calls that are errors in torch."""
    if op.error_inputs_func is None:
        return
    torch.manual_seed(0)
    for number, e in enumerate(op.error_inputs("cpu")):
        s = e.sample_input
        error = Variant("error", function=op.op)
        yield Case(op, error, torch.float32, number, s.input, tuple(s.args), dict(s.kwargs))


@functools.lru_cache(maxsize=8)
def _samples(name: str, dtype: torch.dtype) -> list[Any]:
    op = database()[name]
    with_gradient = dtype.is_floating_point and op.supports_autograd
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(op.sample_inputs("cpu", dtype, requires_grad=with_gradient))
