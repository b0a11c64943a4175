"""Layers over the types of a heterograph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from ...base import DGLError

__all__ = [
    "HeteroEmbedding",
    "HeteroGraphConv",
    "HeteroLinear",
]

_REDUCTIONS = {
    "sum": lambda stacked: stacked.sum(dim=0),
    "max": lambda stacked: stacked.amax(dim=0),
    "min": lambda stacked: stacked.amin(dim=0),
    "mean": lambda stacked: stacked.mean(dim=0),
    "stack": lambda stacked: stacked.transpose(0, 1),
}


class HeteroGraphConv(nn.Module):
    """One module a relation, and a reduction of the results at each type of destination.

    `mods` maps types of edges, or triples, to modules that take a graph and a pair of features;
    `aggregate` is "sum", "max", "min", "mean", "stack" (a new dimension 1) or a function of a list
    and the type. Features are a dict by type of node, or a pair of dicts; relations without
    features of their sources are left out. `mod_args` and `mod_kwargs` are more arguments by type
    of edge. DGLError for another `aggregate`, KeyError for a relation without a module.
    """

    def __init__(self, mods: dict, aggregate: str | Callable = "sum"):
        super().__init__()
        self.mods = nn.ModuleDict({str(etype): module for etype, module in mods.items()})
        # The sum over the relations has an output where one relation has none.
        for module in self.mods.values():
            allow = getattr(module, "set_allow_zero_in_degree", None)
            if callable(allow):
                allow(True)
        self.agg_fn = get_aggregate_fn(aggregate) if isinstance(aggregate, str) else aggregate

    def forward(self, g, inputs, mod_args: dict | None = None, mod_kwargs: dict | None = None):
        mod_args, mod_kwargs = mod_args or {}, mod_kwargs or {}
        source, destination, skips_destinations = self._ends(g, inputs)
        outputs: dict[str, list[Tensor]] = {ntype: [] for ntype in g.dsttypes}
        for triple in g.canonical_etypes:
            before, etype, after = triple
            if before not in source or (skips_destinations and after not in destination):
                continue
            out = self._get_module(triple)(
                g[triple],
                (source[before], destination[after]),
                *mod_args.get(etype, ()),
                **mod_kwargs.get(etype, {}),
            )
            outputs[after].append(out)
        return {ntype: self.agg_fn(outs, ntype) for ntype, outs in outputs.items() if outs}

    def _ends(self, g, inputs) -> tuple[dict, dict, bool]:
        """Features of sources and destinations, and whether the latter may be missing."""
        if isinstance(inputs, tuple):
            return inputs[0], inputs[1], True
        if not g.is_block:
            return inputs, inputs, False
        rows = {ntype: feat[: g.num_dst_nodes(ntype)] for ntype, feat in inputs.items()}
        return inputs, rows, True

    def _get_module(self, triple: tuple[str, str, str]) -> nn.Module:
        name = str(triple)
        return self.mods[name if name in self.mods else triple[1]]


def get_aggregate_fn(agg: str) -> Callable[[list[Tensor], str], Tensor]:
    if agg not in _REDUCTIONS:
        raise DGLError(f"aggregate is one of {', '.join(_REDUCTIONS)}, not {agg!r}")
    return partial(_reduced, agg)


def _reduced(agg: str, outs: list[Tensor], ntype: str) -> Tensor:
    return _REDUCTIONS[agg](torch.stack(outs))


class HeteroLinear(nn.Module):
    """One linear layer a type: a dict of features to a dict of features of `out_size`."""

    def __init__(self, in_size: dict, out_size: int, bias: bool = True):
        super().__init__()
        self.linears = nn.ModuleDict(
            {str(key): nn.Linear(size, out_size, bias=bias) for key, size in in_size.items()}
        )

    def forward(self, feat: dict) -> dict:
        return {key: self.linears[str(key)](rows) for key, rows in feat.items()}


class HeteroEmbedding(nn.Module):
    """One table of embeddings a type: a dict of numbers of rows to a dict of rows."""

    def __init__(self, num_embeddings: dict, embedding_dim: int):
        super().__init__()
        self.raw_keys = {str(key): key for key in num_embeddings}
        self.embeds = nn.ModuleDict(
            {str(key): nn.Embedding(rows, embedding_dim) for key, rows in num_embeddings.items()}
        )

    @property
    def weight(self) -> dict:
        return {self.raw_keys[name]: table.weight for name, table in self.embeds.items()}

    def reset_parameters(self) -> None:
        for table in self.embeds.values():
            nn.init.xavier_uniform_(table.weight)

    def forward(self, input_ids: dict) -> dict:
        return {key: self.embeds[str(key)](rows) for key, rows in input_ids.items()}
