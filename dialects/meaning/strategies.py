"""Hypothesis strategies: arguments of inter functions that shrink towards small graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

from ..inter.structure import AttachOp
from ..inter.types import SetType
from .graphs import NoArguments, fixed_sizes, random_arguments


def set_sizes(func: FuncOp, largest: int = 8) -> st.SearchStrategy[dict[str, int]]:
    """Numbers of rows for the set arguments of a function: 0 to `largest`, sets with maps up to
    three times that; sets that integers are attached to have a row."""
    ends = {
        m.codomain
        for op in func.body.block.ops
        if isinstance(op, AttachOp)
        for m in op.new_maps().values()
    }
    fixed = fixed_sizes(func)
    out: dict[str, st.SearchStrategy[int]] = {}
    for a in func.body.block.args:
        if isinstance(a.type, SetType):
            name = a.type.label
            most = largest * 3 if a.type.maps.data else largest
            least = 1 if name in ends else 0
            out[name] = st.just(fixed[name]) if name in fixed else st.integers(least, most)
    return st.fixed_dictionaries(out)


@st.composite
def arguments(
    draw: st.DrawFn,
    func: FuncOp,
    largest: int = 8,
    values: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Arguments for a function: sizes first (they shrink), then everything from a seed."""
    sizes = draw(set_sizes(func, largest))
    seed = draw(st.integers(0, 2**32 - 1))
    try:
        return random_arguments(func, np.random.default_rng(seed), sizes, values)
    except NoArguments:  # these sizes cannot be had together
        reject()
