"""Tables, parameters of which each rank has some rows: those of its own nodes where there is a row
a node, else a block of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parameter import is_lazy

from ....runtime.ranks.communicator import Communicator
from . import cut_tensors, lookups, shard_sizes
from .cut_tensors import CutTensor, NodePart
from .drawn_rows import drawn, seed_of_all
from .row_exchange import given_out


@dataclass(frozen=True)
class Table:
    """A parameter that is to be cut: its name in the model, the type of nodes that it has a row of
    each of (None: the one with as many), and the `nn.Embedding` that has it, if one does."""

    name: str
    parameter: nn.Parameter
    type: Any
    module: nn.Embedding | None

    @property
    def told(self) -> str:
        """What all ranks have alike of it."""
        of = "" if self.type is None else f" of {self.type!r}"
        return self.name + of + (" on the device meta" if self.parameter.is_meta else "")


def tables_of(model: nn.Module, sharded: Any) -> list[Table]:
    """The parameters that a user names.

    Raises:
        TypeError: `sharded` has neither names nor types of nodes by name.
        ValueError: a name is none of a parameter, or of one without rows.
    """
    if isinstance(sharded, str) or not isinstance(sharded, Iterable):
        raise TypeError(
            "sharded: a list of names of parameters, or a dict with the type of nodes of each, not "
            f"{sharded!r}"
        )
    types: Mapping[Any, Any] = sharded if isinstance(sharded, Mapping) else dict.fromkeys(sharded)
    there = dict(model.named_parameters(remove_duplicate=False))
    modules = {id(m.weight): m for m in model.modules() if isinstance(m, nn.Embedding)}
    out: dict[int, Table] = {}
    for name, of in types.items():
        if not isinstance(name, str):
            raise TypeError(f"sharded: names are texts, not {type(name).__name__}")
        if name not in there:
            has = ", ".join(there) or "none"
            raise ValueError(f"sharded: {name!r} is no parameter of the model, which has {has}")
        x = there[name]
        if is_lazy(x) or not x.dim():
            shape = "no shape yet" if is_lazy(x) else "one number, and no rows"
            raise ValueError(f"sharded: {name!r} has {shape}")
        if x.is_meta and id(x) not in modules:
            raise ValueError(
                f"sharded: {name!r} is on the device meta and has no numbers: how they are drawn "
                "is known of a torch.nn.Embedding alone"
            )
        out.setdefault(id(x), Table(name, x, of, modules.get(id(x))))  # one may have several names
    return list(out.values())


def part_of(
    table: Table, parts: Mapping[Any, NodePart], chunks: int, communicator: Communicator
) -> NodePart:
    """Whose the rows of a table are: those of the nodes of which there are as many, from the parts
    of each type, or else those of a block of rows for each rank.

    Raises:
        ValueError: there are not as many nodes of the type that was given, or as many of several
            types, or as many of none where no index is known to read the rows.
    """
    rows = len(table.parameter)
    if table.type is not None:
        if table.type not in parts:
            has = ", ".join(map(repr, parts)) if list(parts) != [None] else "none"
            raise ValueError(
                f"sharded: {table.name!r} is to have rows of nodes of type {table.type!r}, of "
                f"types there are {has}"
            )
        if parts[table.type].total != rows:
            raise ValueError(
                f"sharded: {table.name!r} has {rows} rows, and there are "
                f"{parts[table.type].total} nodes of type {table.type!r}"
            )
        return parts[table.type]
    found = [k for k, part in parts.items() if part.total == rows]
    if len(found) > 1:
        raise ValueError(
            f"sharded: {table.name!r} has {rows} rows, as many as there are nodes of several types "
            f"({', '.join(map(repr, found))}): say which by a dict, "
            f"sharded={{{table.name!r}: {found[0]!r}}}"
        )
    if found:
        return parts[found[0]]
    if table.module is None:
        counts = (str(p.total) if k is None else f"{p.total} {k!r}" for k, p in parts.items())
        raise ValueError(
            f"sharded: {table.name!r} has {rows} rows, and the graph {', '.join(counts)} nodes: a "
            "row a node is needed, or a torch.nn.Embedding, whose rows are read by an index"
        )
    none = np.zeros(0, np.int64)
    own = lookups.block(rows, communicator.rank, communicator.size)
    return NodePart(own, none, none, none.astype(np.int32), none, rows, chunks)


def shard(
    model: nn.Module,
    tables: Sequence[Table],
    parts: Mapping[Any, NodePart],
    chunks: int,
    communicator: Communicator,
) -> None:
    """Puts parameters in the place of tables that have this rank's rows, with the numbers that rank
    0 has, or with others where it has none.

    Raises:
        ValueError: as `part_of`, on all ranks.
    """
    found = [(table, part_of(table, parts, chunks, communicator)) for table in tables]
    for table, part in found:
        old = table.parameter
        if old.is_meta:
            padding = None if table.module is None else table.module.padding_idx
            own = drawn(old, part.owned, seed_of_all(communicator), padding)
        elif communicator.size > 1:
            own = given_out(old, part.owned, communicator).to(old.device)
        else:
            shard_sizes.of_any_size(old)
            continue
        new = nn.Parameter(own, requires_grad=old.requires_grad)
        shard_sizes.of_any_size(new)
        if communicator.size > 1:
            cut_tensors.note(new, CutTensor("table", part, tuple(old.shape), table.name))
        _replace(model, old, new)


def _replace(model: nn.Module, old: nn.Parameter, new: nn.Parameter) -> None:
    """Under all of its names."""
    for module in model.modules():
        for key, x in list(module._parameters.items()):
            if x is old:
                module.register_parameter(key, new)
                if _pads_as_torch(module):
                    module.__class__ = _padded(type(module))


def _pads_as_torch(module: nn.Module) -> bool:
    is_plain = isinstance(module, nn.Embedding) and type(module).forward is nn.Embedding.forward
    return is_plain and module.padding_idx is not None


@cache
def _padded(kind: type[nn.Embedding]) -> type[nn.Embedding]:
    """A kind of `nn.Embedding` whose padding row is looked for among the rows of all ranks."""
    return type(kind.__name__, (Padded, kind), {}) if kind is not nn.Embedding else Padded


class Padded(nn.Embedding):
    """A sharded `nn.Embedding` with a row that gets no gradient: torch's own looks for this row
    among those of the rank."""

    def forward(self, input: Tensor) -> Tensor:
        """The rows of the table at `input`, integers [..]: [.., columns]."""
        how = self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        out = F.embedding(input, self.weight, None, *how)
        return torch.where((input == self.padding_idx).unsqueeze(-1), out.detach(), out)
