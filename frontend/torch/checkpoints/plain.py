"""Plain data: what a checkpoint may have beside tensors, and hashes of both.

Types are compared exactly: of a subclass (a number of NumPy's, say) the file would have code to
run, which is not read.
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

SCALARS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.Size, torch.device)
MAPPINGS = (dict, OrderedDict, Counter)
SEQUENCES = (list, tuple)
TENSORS = (Tensor, nn.Parameter)


def check(value: Any, name: str) -> None:
    """
    Raises:
        TypeError: something in it is neither a tensor nor plain data; the message says where, as
            in the expression `name`.
    """
    for _ in _leaves(value, name):
        continue


def digest(value: Any, name: str) -> str:
    """A hash of all types, numbers and bits, whatever the order of keys.

    Raises:
        TypeError: as `check`.
    """
    found = hashlib.sha256()
    for leaf in _leaves(value, name):
        if not isinstance(leaf, Tensor):
            found.update(f"{type(leaf).__name__} {leaf!r}\n".encode())
            continue
        found.update(f"{leaf.layout} {leaf.dtype} {tuple(leaf.shape)}\n".encode())
        for part in _strided(leaf.detach()):
            flat = part.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
            found.update(flat.view(torch.uint8).numpy())
    return found.hexdigest()


def _leaves(value: Any, place: str) -> Iterator[Any]:
    """Tensors and scalars in the order of the containers, of which each begins with what it is."""
    kind = type(value)
    if kind in SCALARS or kind in TENSORS:
        yield value
    elif kind in MAPPINGS:
        yield f"{kind.__name__} of {len(value)}"
        for key in sorted(value, key=repr):
            yield from _leaves(key, f"a key of {place}")
            yield from _leaves(value[key], f"{place}[{key!r}]")
    elif kind in SEQUENCES:
        yield f"{kind.__name__} of {len(value)}"
        for i, x in enumerate(value):
            yield from _leaves(x, f"{place}[{i}]")
    elif kind is set:
        yield f"set of {len(value)}"
        for x in sorted(value, key=repr):
            yield from _leaves(x, f"an element of {place}")
    else:
        raise TypeError(
            f"{place} is of type {kind.__name__}: a checkpoint has tensors, numbers, texts, and "
            "lists and dicts of these, and objects with state_dict and load_state_dict"
        )


def _strided(x: Tensor) -> tuple[Tensor, ...]:
    """The tensors that a tensor is stored as."""
    if x.layout == torch.strided:
        return (x,)
    if x.layout == torch.sparse_coo:
        return x._indices(), x._values()
    if x.layout in (torch.sparse_csr, torch.sparse_bsr):
        return x.crow_indices(), x.col_indices(), x.values()
    return x.ccol_indices(), x.row_indices(), x.values()
