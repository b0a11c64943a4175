"""Dense tensors that are mostly zeros, taken as sparse matrices where that costs less.

Features of words and the like are given dense, with a few numbers in a thousand that are not 0. A
product with them is then a sum of a few rows of the weight. What a tensor holds is counted once for
each state that it is in; that takes as long as one look at it, so a callable that is given a new
tensor at each call is left alone after a few.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ....passes.analysis.seconds import dense_features_seconds, sparse_features_seconds
from ..constant_inputs import look, may_stay
from . import speeds
from .operations import Entries

log = logging.getLogger("gnnc")

SHARE = 0.5
"""What is not 0 in features that may be worth it, whatever they are multiplied by."""
_LOOKED_AT = 8
"""New states of tensors that a callable may come with before it is left alone."""


@dataclass(frozen=True)
class Product:
    """A product of a graph: the numbers of a matrix, how many of them are entries, and the width of
    what it is multiplied by, for the first call's arguments."""

    numbers: int
    entries: int
    width: int
    number_bytes: int


@dataclass
class _Known:
    """What was found of a tensor in one of its states. Numbers of objects come again: `of` tells
    whether it is still the same tensor."""

    of: weakref.ref[Tensor]
    version: int
    seen: bytes
    entries: Entries | None


_known: dict[int, _Known] = {}


def entries_of(x: Tensor) -> Entries | None:
    """The entries that stand for a tensor in programs, where it is taken as sparse."""
    known = _known.get(id(x))
    return known.entries if known is not None and known.of() is x else None


class NotWorth(Exception):
    """The products of features cost less where they are dense."""


class Features:
    """The dense arguments of one callable that are taken as sparse; `note` is told what is chosen,
    and why. `among_ranks`: all ranks choose together, in each call."""

    among_ranks = False

    def __init__(self, wanted: bool = True, note: Callable[[str], None] = log.info) -> None:
        self.left = _LOOKED_AT if wanted else 0
        self.note = note

    def stay_dense(self, reason: object) -> None:
        """Notes why the features of a graph are not taken as sparse."""
        self.note(f"features stay dense: {reason}")

    def places(self, args: Sequence[Any]) -> list[int]:
        """Which arguments of a graph may be features."""
        wanted = self.left > 0
        return [i for i, x in enumerate(args) if wanted and may_stay(x) and x.dim() == 2]

    def of(self, args: Sequence[Any], places: Sequence[int]) -> dict[int, Entries]:
        """The entries of those of a call's arguments at these places that are worth it."""
        if self.left == 0:
            return {}
        found = {i: self._look(args[i]) for i in places if may_stay(args[i])}
        return {i: x for i, x in found.items() if x is not None}

    def check(self, products: Sequence[Product]) -> None:
        """Raises NotWorth where the products of a graph cost less with dense features."""
        products = self.weighed(products)
        share = max((p.entries / p.numbers for p in products if p.numbers), default=0.0)
        widths = ", ".join(map(str, sorted({p.width for p in products})))
        what = f"{share:.3g} of them are not 0, products with what is {widths} wide cost less so"
        if not pays(products):
            raise NotWorth(what)
        self.note(f"features are taken as sparse: {what}")

    def weighed(self, products: Sequence[Product]) -> Sequence[Product]:
        """The products by whose costs features are chosen."""
        return products

    def _look(self, x: Tensor) -> Entries | None:
        known, seen = _known.get(id(x)), look(x)
        if (
            known is None
            or known.of() is not x
            or (known.version, known.seen) != (x._version, seen)
        ):
            if known is None or known.of() is not x:
                weakref.finalize(x, _known.pop, id(x), None)
            known = _known[id(x)] = _Known(weakref.ref(x), x._version, seen, _sparse(x))
            self.left -= 1
        if self.left == 0:
            self.note("features stay dense: they are others at each call")
            return None
        return known.entries


@torch.inference_mode(False)  # what is kept is for calls with gradients as well
def _sparse(x: Tensor) -> Entries | None:
    """A tensor as the numbers that are not 0, None where they are too many or not all finite: a
    product of infinity and 0 is NaN, which only a dense one finds."""
    share = int(torch.count_nonzero(x)) / x.numel()
    if share > SHARE:
        return None
    found = entries(x)
    return found if bool(torch.isfinite(found.value).all()) else None


def entries(x: Tensor) -> Entries:
    """The numbers of a dense tensor that are not 0."""
    # in memory of their own: torch gives both as parts of one tensor
    row, col = (i.clone() for i in x.nonzero(as_tuple=True))
    return Entries(row, col, x[row, col], (x.shape[0], x.shape[1]), torch.strided)


def pays(products: Sequence[Product]) -> bool:
    """Whether the products of a graph cost less by entries, by the speeds of the target, or of this
    machine where they were measured."""
    target = speeds.target()
    dense = sparse = 0.0
    for p in products:
        dense += dense_features_seconds(target, p.numbers, p.width, p.number_bytes)
        sparse += sparse_features_seconds(target, p.entries, p.width, p.number_bytes)
    return sparse < dense
