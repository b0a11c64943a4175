"""Calls are bound as torch binds them, whatever the form in which they are written."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx

from gnnc.frontend.torch.importer.calls.canonical import Canonical, canonical
from gnnc.frontend.torch.importer.calls.schemas import (
    NUMPY_NAMES,
    OTHER_NAMES,
    REQUIRED,
    Parameter,
    Signature,
    of_builtin,
)
from gnnc.frontend.torch.importer.rules import RULES

x, y, z = (torch.randn(4, 3) for _ in range(3))
index = torch.tensor([2, 0])
mask = x > 0


class Named(fx.Graph):
    """A graph of calls on tensors, which become placeholders, as Dynamo has them."""

    def lift(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            node = self.placeholder("t")
            node.meta["example_value"] = value
            return node
        if isinstance(value, tuple | list):
            return type(value)(self.lift(v) for v in value)
        return value

    def call(self, target: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> fx.Node:
        mine = self.lift(args), {k: self.lift(v) for k, v in kwargs.items()}
        if isinstance(target, str):
            return self.call_method(target, *mine)
        return self.call_function(target, *mine)


def plain(value: Any) -> Any:
    """Nodes as the tensors that they stand for."""
    if isinstance(value, fx.Node):
        return value.meta["example_value"]
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value


def bind(target: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Canonical:
    call = canonical(Named().call(target, *args, **kwargs))
    assert call is not None
    return call


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or (not isinstance(a, Tensor) and type(a) is type(b) and a == b)


def assert_bound(call: Canonical, op: str, **wanted: Any) -> None:
    """The arguments that are not at their defaults are these."""
    assert call.fault is None
    assert call.op == op
    found = {name: plain(call.arguments[name]) for name in call.set_apart()}
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert same(found[name], plain(value)), name


FORMS: list[tuple[Any, tuple[Any, ...], dict[str, Any], str, dict[str, Any]]] = [
    # the same op as function, method, operator, in place; Python's numbers on either side
    (torch.add, (x, y), {}, "add", {"input": x, "other": y}),
    ("add", (x, y), {"alpha": 2}, "add", {"input": x, "other": y, "alpha": 2}),
    (torch.add, (), {"x2": y, "x1": x}, "add", {"input": x, "other": y}),
    (operator.add, (2, x), {}, "add", {"input": 2, "other": x}),
    (operator.sub, (2.5, x), {}, "sub", {"input": 2.5, "other": x}),
    (operator.pow, (2, x), {}, "pow", {"input": 2, "exponent": x}),
    (operator.truediv, (x, 2), {}, "div", {"input": x, "other": 2}),
    (torch.ops.aten.add.Tensor, (x, y), {"alpha": 3}, "add", dict(input=x, other=y, alpha=3)),
    (torch.ops.aten.add, (x, y), {}, "add", {"input": x, "other": y}),
    (torch.true_divide, (x, y), {}, "div", {"input": x, "other": y}),
    (torch.div, (x, 2), {"rounding_mode": "trunc"}, "div",
     {"input": x, "other": 2, "rounding_mode": "trunc"}),
    # orders that torch has given up
    (torch.add, (x, 2, y), {}, "add", {"input": x, "other": y, "alpha": 2}),
    ("add_", (x, 0.1, y), {}, "add", {"input": x, "other": y, "alpha": 0.1}),
    (torch.sub, (x, 2, y), {}, "sub", {"input": x, "other": y, "alpha": 2}),
    ("addcmul", (x, 2, y, z), {}, "addcmul", dict(input=x, tensor1=y, tensor2=z, value=2)),
    ("addcdiv_", (x, 2, y, z), {}, "addcdiv", dict(input=x, tensor1=y, tensor2=z, value=2)),
    (torch.addmm, (3, x, 2, y, z), {}, "addmm", dict(beta=3, input=x, alpha=2, mat1=y, mat2=z)),
    (torch.addmm, (3, x, y, z), {}, "addmm", dict(beta=3, input=x, mat1=y, mat2=z)),
    ("baddbmm", (x, 3, 2, y, z), {}, "baddbmm",
     dict(beta=3, input=x, alpha=2, batch1=y, batch2=z)),
    (torch.rsub, (x, y), {"alpha": 2}, "rsub", {"input": x, "other": y, "alpha": 2}),
    # NumPy's names
    (torch.cat, ([x, y],), {"axis": 1}, "cat", {"tensors": [x, y], "dim": 1}),
    ("sum", (x,), {"axis": 1, "keepdims": True}, "sum", {"input": x, "dim": 1, "keepdim": True}),
    (torch.softmax, (x,), {"axis": -1}, "softmax", {"input": x, "dim": -1}),
    (torch.concatenate, ((x, y),), {"axis": 1}, "cat", {"tensors": [x, y], "dim": 1}),
    # overloads go by the types of arguments
    (torch.max, (x, y), {}, "max", {"input": x, "other": y}),
    (torch.max, (x,), {"other": y}, "max", {"input": x, "other": y}),
    ("max", (x, 1, True), {}, "max", {"input": x, "dim": 1, "keepdim": True}),
    (torch.std, (x, False), {}, "std", {"input": x, "unbiased": False}),
    (torch.std, (x, 1, False, True), {}, "std",
     {"input": x, "dim": 1, "unbiased": False, "keepdim": True}),
    (torch.var, (x, 1), {"correction": 2}, "var", {"input": x, "dim": 1, "correction": 2}),
    ("where", (x, mask, z), {}, "where", {"condition": mask, "input": x, "other": z}),
    (torch.where, (mask, 1.0, y), {}, "where", {"condition": mask, "input": 1.0, "other": y}),
    (torch.where, (mask,), {}, "where", {"condition": mask}),
    (torch.clamp, (x,), {"min": y}, "clamp", {"input": x, "min": y}),
    (torch.clip, (x, 0, 1), {}, "clamp", {"input": x, "min": 0, "max": 1}),
    ("to", (x, torch.float64), {}, "to", {"input": x, "dtype": torch.float64}),
    ("to", (x, "cpu", torch.float64), {}, "to",
     {"input": x, "device": "cpu", "dtype": torch.float64}),
    ("to", (x, y), {"copy": True}, "to", {"input": x, "other": y, "copy": True}),
    ("type", (x, torch.float64), {}, "type", {"input": x, "dtype": torch.float64}),
    (torch.arange, (5,), {}, "arange", {"end": 5}),
    (torch.arange, (1, 5), {"step": 2}, "arange", {"start": 1, "end": 5, "step": 2}),
    (torch.scatter, (x, 1, index, 2.0), {}, "scatter",
     {"input": x, "dim": 1, "index": index, "value": 2.0}),
    ("scatter_", (x, 1, index), {"src": y, "reduce": "add"}, "scatter",
     {"input": x, "dim": 1, "index": index, "src": y, "reduce": "add"}),
    ("addmm", (x, 3, 2, y, z), {}, "addmm", dict(input=x, beta=3, alpha=2, mat1=y, mat2=z)),
    # numbers one by one
    ("permute", (x, 1, 0), {}, "permute", {"input": x, "dims": [1, 0]}),
    ("permute", (x, (1, 0)), {}, "permute", {"input": x, "dims": [1, 0]}),
    ("view", (x, 3, 4), {}, "view", {"input": x, "size": [3, 4]}),
    ("view", (x, torch.int32), {}, "view", {"input": x, "dtype": torch.int32}),
    (torch.zeros, (2, 3), {"dtype": torch.int64}, "zeros",
     {"size": [2, 3], "dtype": torch.int64}),
    ("new_zeros", (x, 2, 3), {}, "new_zeros", {"input": x, "size": [2, 3]}),
    (torch.ones, (2,), {"requires_grad": True}, "ones", {"size": [2], "requires_grad": True}),
    ("repeat", (x, 2), {}, "repeat", {"input": x, "repeats": [2]}),
    # functions and methods that are written in Python
    (F.relu, (x, True), {}, "relu", {"input": x, "inplace": True}),
    (F.leaky_relu, (x, 0.1), {}, "leaky_relu", {"input": x, "negative_slope": 0.1}),
    (F.embedding, (), {"weight": x, "input": index}, "embedding", {"input": index, "weight": x}),
    ("norm", (x, 1), {"dim": 1}, "norm", {"input": x, "p": 1, "dim": 1}),
    ("split", (x, 2, 1), {}, "split", {"input": x, "split_size": 2, "dim": 1}),
    (torch.split, (x, [1, 3]), {}, "split", {"input": x, "split_size": [1, 3]}),
    (torch.einsum, ("ij,kj", x, y), {}, "einsum", {"args": ["ij,kj", x, y]}),
    (torch.index_select, (x, 0, index), {}, "index_select", dict(input=x, dim=0, index=index)),
    # names of one meaning
    ("index_add_", (x, 0), {"index": index, "source": y}, "index_add",
     {"input": x, "dim": 0, "index": index, "src": y}),
    (torch.mm, (x,), {"mat2": y}, "mm", {"input": x, "other": y}),
    (torch.swapaxes, (x,), {"axis0": 0, "axis1": 1}, "transpose", dict(input=x, dim0=0, dim1=1)),
    (torch.dropout, (x, 0.1, True), {}, "dropout", {"input": x, "p": 0.1, "training": True}),
    # items and attributes
    (operator.getitem, (x, 0), {}, "getitem", {"input": x, "index": 0}),
    (getattr, (x, "T"), {}, "T", {"input": x}),
]  # fmt: skip


@pytest.mark.parametrize("target, args, kwargs, op, wanted", FORMS)
def test_a_form_of_a_call_names_its_arguments(
    target: Any, args: Any, kwargs: Any, op: str, wanted: dict[str, Any]
) -> None:
    assert_bound(bind(target, *args, **kwargs), op, **wanted)


def test_a_signatures_defaults_are_filled_in() -> None:
    call = bind(torch.sum, x, 1)
    assert dict(call.arguments, input=None) == dict(input=None, dim=1, keepdim=False, dtype=None)
    assert call.defaults == {"keepdim": False, "dtype": None}
    assert bind("sum", x, 1, keepdim=False).set_apart() == {"input", "dim"}
    # True is not 1, nor is a default's value in another type
    assert "p" in bind(F.dropout, x, True).set_apart()


EDITS: list[tuple[Any, tuple[Any, ...], dict[str, Any], list[str]]] = [
    ("add_", (x, y), {}, ["input"]),
    (operator.iadd, (x, y), {}, ["input"]),
    (operator.iadd, (3, 4), {}, []),
    (operator.setitem, (x, 0, y), {}, ["input"]),
    (F.relu, (x, True), {}, ["input"]),
    (F.relu, (x,), {"inplace": True}, ["input"]),
    (F.relu_, (x,), {}, ["input"]),
    (F.leaky_relu, (x, 0.1, True), {}, ["input"]),
    (F.dropout, (x, 0.5, True, True), {}, ["input"]),
    (F.dropout, (x, 0.5, True, False), {}, []),
    (torch.add, (x, y), {"out": z}, ["out"]),
    (torch.max, (x, 1), {"out": (y, index)}, ["out"]),
    (F.normalize, (x,), {"out": z}, ["out"]),
    ("copy_", (x, y), {}, ["input"]),
    ("index_put_", (x, (index,), y), {}, ["input"]),
    ("requires_grad_", (x,), {}, []),
    ("logical_and", (mask, mask), {}, []),
    (operator.and_, (mask, mask), {}, []),
    (torch.ops.aten.add_.Tensor, (x, y), {}, ["input"]),
    (torch._foreach_add_, ([x, y], 1.0), {}, ["input"]),
    (F.batch_norm, (x, y, z, None, None, True), {}, ["running_mean", "running_var"]),
    (F.batch_norm, (x, y, z), {"training": True}, ["running_mean", "running_var"]),
    (F.batch_norm, (x, y, z), {}, []),
    (F.embedding, (index, x, None, 1.0), {}, ["weight"]),
]


@pytest.mark.parametrize("target, args, kwargs, edits", EDITS)
def test_what_a_call_writes_to(target: Any, args: Any, kwargs: Any, edits: list[str]) -> None:
    call = bind(target, *args, **kwargs)
    assert call.fault is None
    assert list(call.edits) == edits
    written = [call.arguments[e] for e in edits]
    flat = [n for w in written for n in (w if isinstance(w, tuple | list) else [w])]
    assert list(call.edited) == flat


def add(a: Tensor, b: Tensor) -> Tensor:
    """A user's function that is called as an op is."""
    return a * b


UNKNOWN: list[tuple[Any, tuple[Any, ...], dict[str, Any], int]] = [
    (add, (x, y), {}, 0),
    (torch.sum, (x,), {"axes": 1}, 0),
    (torch.sum, (x,), {"axis": 1, "dim": 1}, 0),
    (F.relu, (x, True, True), {}, 0),
    ("clamp_", (x,), {"lowest": 1}, 1),
    (torch.add, (x,), {"out": z}, 1),
    (F.elu, (x,), {"inplace": True, "unknown": 1}, 1),
]


@pytest.mark.parametrize("target, args, kwargs, edits", UNKNOWN)
def test_a_call_that_fits_no_signature_has_a_fault(
    target: Any, args: Any, kwargs: Any, edits: int
) -> None:
    call = bind(target, *args, **kwargs)
    assert call.fault is not None
    assert not call.arguments
    assert len(call.edited) == edits


# ---------------------------------------------------------------- every signature, every spelling

SAMPLES: dict[str, Callable[[int], Any]] = {
    "Generator": lambda k: torch.Generator(),
    "Tensor": lambda k: torch.zeros(k + 1),
    "number": lambda k: k + 2.5,
    "float": lambda k: k + 0.25,
    "int": lambda k: k + 3,
    "bool": lambda k: True,
    "str": lambda k: "cpu",
    "ScalarType": lambda k: torch.int16,
    "Layout": lambda k: torch.strided,
    "MemoryFormat": lambda k: torch.preserve_format,
    "Device": lambda k: torch.device("cpu"),
}


def sample(parameter: Parameter, k: int) -> Any:
    wanted = parameter.type.removeprefix("Optional[").rstrip("]")
    if wanted.startswith("List["):
        inner = wanted.removeprefix("List[").removeprefix("Optional[")
        return [SAMPLES[inner](k), SAMPLES[inner](k + 1)]
    return SAMPLES.get(wanted, lambda k: 1.5)(k)


def builtin(spelled: str) -> Callable[..., Any] | None:
    """The function of a name; None where there is only a method."""
    for place in (torch._C._VariableFunctions, torch._C._nn, torch._C._linalg, torch._C._special):
        function = getattr(place, spelled, None)
        if function is not None:
            return function
    return None


SIGNATURES = [
    (spelled, signature)
    for op in sorted(RULES)
    for spelled in (op, op + "_", *(n for n, o in OTHER_NAMES.items() if o == op))
    if not op.startswith("gnnc.")
    for signature in of_builtin(spelled)
    if hasattr(Tensor, spelled) or builtin(spelled)
]


@pytest.mark.parametrize("spelled, signature", SIGNATURES)
def test_every_signature_binds_in_every_spelling(spelled: str, signature: Signature) -> None:
    """Arguments by position as far as one likes, the others by keyword in any order, under NumPy's
    names where it has them, and those that have a default given or not."""
    draw = random.Random(spelled)
    aliases = {name: alias for alias, name in NUMPY_NAMES.items()}
    values = {p.name: sample(p, k) for k, p in enumerate(signature)}
    target = builtin(spelled)
    order = sorted(signature, key=lambda p: p.name != "input") if target is None else signature
    for _ in range(8):
        given = [p for p in order if p.default is REQUIRED or draw.random() < 0.5]
        first = [p for p, q in zip(given, order, strict=False) if p is q and not p.keyword_only]
        first = first[: draw.randint(int(target is None), len(first))]
        rest = [p for p in given if p not in first]
        draw.shuffle(rest)
        keywords = [draw.choice([p.keyword, aliases.get(p.keyword, p.keyword)]) for p in rest]
        call = bind(
            spelled if target is None else target,
            *(values[p.name] for p in first),
            **{k: values[p.name] for k, p in zip(keywords, rest, strict=True)},
        )
        assert call.fault is None
        # an earlier signature may take the same, and know fewer or more that have defaults
        given_names = {p.name for p in given}
        assert given_names <= call.arguments.keys()
        for name, value in call.arguments.items():
            default = call.defaults.get(name)
            assert same(plain(value), values[name] if name in given_names else default), name


def test_nodes_that_call_nothing() -> None:
    graph = Named()
    assert canonical(graph.lift(x)) is None
    assert canonical(graph.output(graph.lift(x))) is None
