"""PNA."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ....readout import broadcast_nodes
from ..helpers import aggregate_edges, ends

# Under the roots: their slope stays finite where all messages into a node are equal.
_TINY = 1e-30


def _variance(graph, messages: Tensor) -> Tensor:
    mean = aggregate_edges(graph, messages, "mean")
    return torch.relu(aggregate_edges(graph, messages * messages, "mean") - mean * mean)


def _moment(graph, messages: Tensor, n: int) -> Tensor:
    """The n-th root, with its sign, of the n-th central moment."""
    mean = aggregate_edges(graph, messages, "mean")
    centred = messages - mean[graph.edges()[1]]
    moment = aggregate_edges(graph, centred.pow(n), "mean")
    return torch.sign(moment) * (moment.abs() + _TINY).pow(1.0 / n)


_AGGREGATORS = {
    "mean": lambda graph, messages: aggregate_edges(graph, messages, "mean"),
    "sum": lambda graph, messages: aggregate_edges(graph, messages, "sum"),
    "max": lambda graph, messages: aggregate_edges(graph, messages, "max"),
    "min": lambda graph, messages: aggregate_edges(graph, messages, "min"),
    "std": lambda graph, messages: torch.sqrt(_variance(graph, messages) + _TINY),
    "var": _variance,
    "moment3": lambda graph, messages: _moment(graph, messages, 3),
    "moment4": lambda graph, messages: _moment(graph, messages, 4),
    "moment5": lambda graph, messages: _moment(graph, messages, 5),
}
_SCALERS = {
    "identity": lambda rows, logs, delta: rows,
    "amplification": lambda rows, logs, delta: rows * (logs / delta),
    "attenuation": lambda rows, logs, delta: rows * (delta / logs),
}


class PNAConvTower(nn.Module):
    """dropout(batchnorm(U [h_i | scaled aggregates of M [h_j | h_i | e_ji]] / sqrt(n))), n the
    nodes of i's graph.
    """

    def __init__(
        self,
        in_size: int,
        out_size: int,
        aggregators: list[str],
        scalers: list[str],
        delta: float,
        dropout: float = 0.0,
        edge_feat_size: int = 0,
    ):
        super().__init__()
        self.in_size = in_size
        self.out_size = out_size
        self.aggregators = aggregators
        self.scalers = scalers
        self.delta = delta
        self.edge_feat_size = edge_feat_size
        self.M = nn.Linear(2 * in_size + edge_feat_size, in_size)
        self.U = nn.Linear((len(aggregators) * len(scalers) + 1) * in_size, out_size)
        self.dropout = nn.Dropout(dropout)
        self.batchnorm = nn.BatchNorm1d(out_size)

    def forward(self, graph, node_feat: Tensor, edge_feat: Tensor | None = None) -> Tensor:
        parts = [*ends(graph, node_feat, node_feat)]
        if self.edge_feat_size > 0:
            parts.append(edge_feat)
        messages = self.M(torch.cat(parts, dim=-1))
        rows = self.U(torch.cat([node_feat, self._scaled(graph, messages)], dim=-1))
        sizes = graph.batch_num_nodes().to(rows).unsqueeze(-1)
        rows = rows * broadcast_nodes(graph, sizes.pow(-0.5))
        return self.dropout(self.batchnorm(rows))

    def _scaled(self, graph, messages: Tensor) -> Tensor:
        rows = torch.cat([_AGGREGATORS[name](graph, messages) for name in self.aggregators], dim=1)
        # Nodes without incoming edges have rows of 0, whatever they are scaled by.
        degrees = graph.in_degrees().to(rows).clamp(min=1).unsqueeze(-1)
        logs = torch.log(degrees + 1)
        return torch.cat([_SCALERS[name](rows, logs, self.delta) for name in self.scalers], dim=1)


class PNAConv(nn.Module):
    """Towers over equal parts of the features, mixed by LeakyReLU(W . + b), with a residual where
    the widths agree (Corso et al., Principal Neighbourhood Aggregation for Graph Nets).

    `aggregators`: mean, sum, max, min, std, var, moment3 to moment5; `scalers`: identity,
    amplification (log(d + 1) / delta) and attenuation (its inverse). Features of nodes (N, in) and
    of edges (E, edge_feat_size) to (N, out). KeyError for other names, AssertionError for sizes
    that the number of towers does not divide, and for features of edges that are missing.
    """

    def __init__(
        self,
        in_size: int,
        out_size: int,
        aggregators: list[str],
        scalers: list[str],
        delta: float,
        dropout: float = 0.0,
        num_towers: int = 1,
        edge_feat_size: int = 0,
        residual: bool = True,
    ):
        super().__init__()
        _refuse_unknown("aggregator", aggregators, _AGGREGATORS)
        _refuse_unknown("scaler", scalers, _SCALERS)
        if in_size % num_towers or out_size % num_towers:
            raise AssertionError(f"{num_towers} towers do not divide {in_size} and {out_size}")
        self.in_size = in_size
        self.out_size = out_size
        self.tower_in_size = in_size // num_towers
        self.tower_out_size = out_size // num_towers
        self.edge_feat_size = edge_feat_size
        self.residual = residual and in_size == out_size
        self.towers = nn.ModuleList(
            PNAConvTower(
                self.tower_in_size,
                self.tower_out_size,
                aggregators,
                scalers,
                delta,
                dropout=dropout,
                edge_feat_size=edge_feat_size,
            )
            for _ in range(num_towers)
        )
        self.mixing_layer = nn.Sequential(nn.Linear(out_size, out_size), nn.LeakyReLU())

    def forward(self, graph, node_feat: Tensor, edge_feat: Tensor | None = None) -> Tensor:
        if self.edge_feat_size > 0 and edge_feat is None:
            raise AssertionError(f"the layer needs features of edges (E, {self.edge_feat_size})")
        parts = node_feat.split(self.tower_in_size, dim=1)
        towers = zip(self.towers, parts, strict=True)
        out = torch.cat([tower(graph, part, edge_feat) for tower, part in towers], dim=1)
        out = self.mixing_layer(out)
        return out + node_feat if self.residual else out


def _refuse_unknown(kind: str, names: list[str], known: dict) -> None:
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise KeyError(f"{', '.join(unknown)}: no such {kind}; there are {', '.join(known)}")
