"""Torch's fake tensors have the strides that torch gives, of transposed operands too, but for the
ops whose results the importer does not trust them for."""

from __future__ import annotations

import logging
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch import Tensor  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.fx.experimental.symbolic_shapes import ShapeEnv  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map_only  # noqa: E402

from gnnc.frontend.torch.importer.memory.layouts import AS_OPERANDS  # noqa: E402

from .samples import Case, cases, database, has_rule, spread, variants  # noqa: E402

SAMPLES = 4


def transposed(x: Tensor) -> Tensor:
    y = x.detach()
    return y.mT.contiguous().mT if x.dim() > 1 else y


def number(n: Any) -> Any:
    return n.node.hint if isinstance(n, torch.SymInt) else n


def strides(x: Tensor) -> list[Any]:
    """Of the dimensions that have more than one row, all of them known."""
    pairs = [(number(n), number(s)) for n, s in zip(x.shape, x.stride(), strict=True)]
    return [s for n, s in pairs if n is not None and n > 1]


def differing(case: Case) -> list[str]:
    if any(x.layout is not torch.strided for x in case.tensors):
        return []
    args, kwargs = tree_map_only(Tensor, transposed, ((case.input, *case.args), case.kwargs))
    function = case.variant.function or case.op.op
    try:
        real = function(*args, **kwargs)
        with FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True) as mode:
            args, kwargs = tree_map_only(Tensor, mode.from_tensor, (args, kwargs))
            fake = function(*args, **kwargs)
    except Exception:  # what torch or its fakes refuse has no strides to compare
        return []
    pairs = zip(tree_leaves(real), tree_leaves(fake), strict=True)
    return [
        f"{case}: {strides(x)}, fake {strides(y)}"
        for x, y in pairs
        if isinstance(x, Tensor)
        and x.numel() > 1
        and all(n is not None for n in map(number, y.shape))
        if strides(x) != strides(y)
    ]


@pytest.mark.long
def test_strides_of_fakes() -> None:
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    found: dict[str, list[str]] = {}
    for op in database().values():
        if has_rule(op) and torch.float32 in op.dtypes:
            some = spread(list(cases(op, torch.float32, variants(op)[0])), SAMPLES)
            if wrong := [d for case in some for d in differing(case)]:
                found[op.name.removeprefix("nn.functional.")] = wrong
    assert found.keys() <= AS_OPERANDS, {k: v for k, v in found.items() if k not in AS_OPERANDS}
    assert "batch_norm" in found
