"""Parameters with a row a node, of which each rank has those of its own nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from ....runtime.ranks.communicator import Communicator
from . import cut_tensors, shard_sizes
from .cut_tensors import CutTensor, NodePart
from .row_exchange import given_out


@dataclass(frozen=True)
class Table:
    """A parameter that is to be cut: its name in the model, and the type of nodes that it has a row
    of each of (None: it is the only type, or the one with as many)."""

    name: str
    parameter: nn.Parameter
    type: Any


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
        out.setdefault(id(x), Table(name, x, of))  # one may have several names
    return list(out.values())


def node_part(table: Table, parts: Mapping[Any, NodePart]) -> NodePart:
    """The nodes whose rows a table has, from those of each type.

    Raises:
        ValueError: there are no such nodes, or several types of as many.
    """
    rows = len(table.parameter)
    if table.type is not None:
        if table.type not in parts:
            has = ", ".join(map(repr, parts)) if list(parts) != [None] else "none"
            raise ValueError(
                f"sharded: {table.name!r} is to have rows of nodes of type {table.type!r}, of "
                f"types there are {has}"
            )
        found = [table.type]
    else:
        found = [k for k, part in parts.items() if part.total == rows or len(parts) == 1]
    if len(found) > 1:
        raise ValueError(
            f"sharded: {table.name!r} has {rows} rows, as many as there are nodes of several types "
            f"({', '.join(map(repr, found))}): say which by a dict, "
            f"sharded={{{table.name!r}: {found[0]!r}}}"
        )
    if not found or parts[found[0]].total != rows:
        counts = ", ".join(
            str(p.total) if k is None else f"{p.total} {k!r}" for k, p in parts.items()
        )
        raise ValueError(
            f"sharded: {table.name!r} has {rows} rows, and the graph {counts} nodes: a row a node "
            "is needed"
        )
    return parts[found[0]]


def shard(
    model: nn.Module,
    tables: Sequence[Table],
    parts: Mapping[Any, NodePart],
    communicator: Communicator,
) -> None:
    """Puts parameters in the place of tables that have the rows of this rank's nodes, with the
    numbers that rank 0 has.

    Raises:
        ValueError: as `node_part`, on all ranks.
    """
    found = [(table, node_part(table, parts)) for table in tables]
    if communicator.size == 1:
        for table in tables:
            shard_sizes.of_any_size(table.parameter)
        return
    for table, part in found:
        old = table.parameter
        own = given_out(old, part.owned, communicator).to(old.device)
        new = nn.Parameter(own, requires_grad=old.requires_grad)
        shard_sizes.of_any_size(new)
        cut_tensors.note(new, CutTensor("nodes", part, tuple(old.shape), table.name))
        for module in model.modules():
            for key, x in list(module._parameters.items()):
                if x is old:
                    module.register_parameter(key, new)
