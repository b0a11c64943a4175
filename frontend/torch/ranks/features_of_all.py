"""Dense features over ranks that are taken as sparse: all ranks choose alike.

What is counted are the numbers of all ranks together. Those tensors may be sparse of which most
numbers were 0 when the graph was cut; a call with some begins with a message that tells whether
they are on some rank others than in the call before, and then all count again.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....runtime.ranks.communicator import Communicator
from ....runtime.ranks.world import world
from ...compiler import Options
from .. import constant_inputs
from ..constant_inputs import look, may_stay
from ..sparse.features import SHARE, Features, Product, entries
from ..sparse.operations import Entries
from . import cut_tensors
from .cut_tensors import CutTensor


def features_of(options: Options, note: Callable[[str], None]) -> Features:
    """The features of a callable, on one rank or on several."""
    kind = Features if world().size == 1 else FeaturesOfAll
    return kind(options.sparse_features, note)


def with_shares(
    known: Sequence[tuple[Tensor, CutTensor]], communicator: Communicator
) -> list[tuple[Tensor, CutTensor]]:
    """What is known of tensors that were cut, with which of them are mostly zeros. All ranks call
    it with theirs."""

    def count(x: Tensor, cut: CutTensor) -> int:
        may = cut.kind == "nodes" and x.dim() == 2 and x.is_floating_point()
        few = math.prod(cut.shape) < constant_inputs.LEAST or x.layout is not torch.strided
        return int(torch.count_nonzero(x)) if may and not few else -1

    mine = np.array([count(x, cut) for x, cut in known], np.int64)
    every = communicator.all_reduce(mine, "sum").tolist()
    return [
        (x, replace(cut, sparse=0 <= n <= SHARE * math.prod(cut.shape)))
        for (x, cut), n in zip(known, every, strict=True)
    ]


@dataclass
class _State:
    """A tensor as this rank has it, and what all ranks have of it: entries and numbers. `taken` are
    its entries where it is taken as sparse."""

    of: weakref.ref[Tensor]
    version: int
    seen: bytes
    count: int
    numbers: int
    taken: Entries | None


class FeaturesOfAll(Features):
    """Features that are taken as sparse on all ranks or on none. Which arguments may be is the same
    on all, and so is what each call asks of it, so that ranks which trace anew do no more than
    others."""

    among_ranks = True

    def __init__(self, wanted: bool, note: Callable[[str], None]) -> None:
        super().__init__(wanted, note)
        self.known: dict[int, _State] = {}
        self.weight = 0, 0
        """The entries and the numbers of what the call at hand takes as sparse, of all ranks."""

    def places(self, args: Sequence[Any]) -> list[int]:
        """See Features."""
        cut = ((i, cut_tensors.of(args[i])) for i in super().places(args))
        return [i for i, c in cut if c is not None and c.sparse]

    def of(self, args: Sequence[Any], places: Sequence[int]) -> dict[int, Entries]:
        """See Features. All ranks call it, in the same call.

        Raises:
            Disagreement: ranks give tensors that were cut in other ways.
        """
        if self.left == 0:
            return {}
        communicator, xs = world(), [args[i] for i in places]
        changed = np.array([not all(map(self._is_known, xs))], np.int64)
        if communicator.all_reduce(changed, "max")[0]:
            self._count(communicator, xs)
            self.left -= 1
        if self.left == 0:
            self.note("features stay dense: they are others at each call")
            self.known.clear()
            return {}
        taken = {i: s for i in places if (s := self.known[id(args[i])]).taken is not None}
        self.weight = sum(s.count for s in taken.values()), sum(s.numbers for s in taken.values())
        return {i: s.taken for i, s in taken.items() if s.taken is not None}

    def weighed(self, products: Sequence[Product]) -> Sequence[Product]:
        """Each with the numbers of all ranks and of all features: one rank's are others."""
        count, numbers = self.weight
        return [replace(p, numbers=numbers, entries=count) for p in products]

    def _is_known(self, x: Tensor) -> bool:
        s = self.known.get(id(x))
        return s is not None and s.of() is x and (s.version, s.seen) == (x._version, look(x))

    @torch.inference_mode(False)  # what is kept is for calls with gradients as well
    def _count(self, communicator: Communicator, xs: Sequence[Tensor]) -> None:
        """Counts the numbers of these tensors on all ranks."""
        mine: list[int] = []
        for x in xs:
            mine += [int(torch.count_nonzero(x)), x.numel(), not _is_finite(x)]
        communicator.agree("how many features a call takes", str(len(xs)))
        every = iter(communicator.all_reduce(np.array(mine, np.int64), "sum").tolist())
        for x in xs:
            count, numbers, unknown = next(every), next(every), next(every)
            takes = not unknown and may_stay(x) and count <= SHARE * numbers
            taken = _noted(x, count) if takes else None
            forget = self.known.pop
            if (old := self.known.get(id(x))) is None or old.of() is not x:
                weakref.finalize(x, forget, id(x), None)
            self.known[id(x)] = _State(weakref.ref(x), x._version, look(x), count, numbers, taken)


def _is_finite(x: Tensor) -> bool:
    return bool(torch.isfinite(x).all())


def _noted(x: Tensor, count: int) -> Entries:
    """The entries of this rank, with how many there are on all: what is kept of their numbers is
    kept on all ranks or on none."""
    found, cut = entries(x), cut_tensors.of(x)
    assert cut is not None
    cut_tensors.note(found.value, CutTensor("entries", cut.part, (count,)))
    return found
