"""Whether the arguments that a program edits lie in memory of their own at a call.

Of a step of training these are the parameters, which torch updates one after another and a program
all from what they were before.

The importer knows who shares memory in the call that was traced; Dynamo guards on arguments that
are one and the same tensor, not on those that are views of one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor

OWN = "l_self_"
"""How Dynamo's names of parameters and buffers of the compiled module start."""


class SharedMemory:
    """Looks at the placeholders `edited`, and at those that they are to be apart from: where all of
    them are a module's own (running statistics), what is no parameter or buffer."""

    def __init__(self, edited: Sequence[int], names: Sequence[str]) -> None:
        self.edited = frozenset(edited)
        own = {i for i, name in enumerate(names) if name.startswith(OWN)}
        passed_over = own - self.edited if self.edited <= own else set[int]()
        self.watched = [i for i in range(len(names)) if i not in passed_over]
        self.tensors: list[int] = []
        # where they were at the last call: parameters and buffers stay, and to ask for a storage
        # takes several times as long as for an address
        self.addresses: list[int] = []
        self.storages: list[int] = []

    def found(self, args: Sequence[Any]) -> bool:
        """Whether an edited argument lies in the memory of another argument."""
        if not self.edited:
            return False
        if not self.tensors:
            self.tensors = [i for i in self.watched if isinstance(args[i], Tensor)]
        addresses = [args[i].data_ptr() for i in self.tensors]
        if addresses == self.addresses:
            return False
        before = self.addresses or [-1] * len(addresses)
        storages = self.storages or [0] * len(addresses)
        for k, (there, old) in enumerate(zip(addresses, before, strict=True)):
            if there != old:
                storages[k] = args[self.tensors[k]].untyped_storage().data_ptr()
        mine = [s for i, s in zip(self.tensors, storages, strict=True) if i in self.edited and s]
        if any(storages.count(s) > 1 for s in mine):
            self.addresses, self.storages = [], []
            return True
        self.addresses, self.storages = addresses, storages
        return False


class OwnMemory:
    """Tells whether all numbers of tensors lie apart; tensors of one storage may."""

    def __init__(self) -> None:
        self.addresses: list[int] = []

    def of_each(self, tensors: Sequence[Tensor]) -> bool:
        """Whether no two numbers have a byte in common; columns of one matrix count as if they had.
        Asked again about tensors that are where they were, it looks no further."""
        addresses = [x.data_ptr() for x in tensors]
        if addresses != self.addresses:
            reaches = [_reach(x) for x in tensors]
            if any(x.nbytes > reach for x, reach in zip(tensors, reaches, strict=True)):
                return False  # an expanded one
            spans = sorted((a, a + reach) for a, reach in zip(addresses, reaches, strict=True))
            if any(start < end for (_, end), (start, _) in pairwise(spans)):
                return False
            self.addresses = addresses
        return True


def _reach(x: Tensor) -> int:
    """How many bytes from its first on a tensor has numbers in."""
    if not x.numel():
        return 0
    last = sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True))
    return (last + 1) * x.element_size()
