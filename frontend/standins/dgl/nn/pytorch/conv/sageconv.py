"""GraphSAGE."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .... import function as fn
from ....base import DGLError
from ....utils import check_eq_shape, expand_as_pair
from ..helpers import aggregate, degree_factor, pair_of, relu_gain

_AGGREGATORS = ("mean", "gcn", "pool", "lstm")


class SAGEConv(nn.Module):
    """h_i = norm(act(W_self h_i + W_neigh agg_j(e_ji h_j) + b)) (Hamilton et al., Inductive
    Representation Learning on Large Graphs).

    `aggregator_type`: "mean"; "gcn", the mean over the neighbours and i itself, in place of both
    terms; "pool", the maximum of relu(W_pool h_j + b); "lstm" over the neighbours in the order of
    the edges. Features (N, in), or a pair, to (N, out). DGLError for another aggregator, and with
    "gcn" for ends of different widths.
    """

    def __init__(
        self,
        in_feats,
        out_feats: int,
        aggregator_type: str,
        feat_drop: float = 0.0,
        bias: bool = True,
        norm=None,
        activation=None,
    ):
        super().__init__()
        if aggregator_type not in _AGGREGATORS:
            named = ", ".join(_AGGREGATORS)
            raise DGLError(f"aggregator_type is one of {named}, not {aggregator_type!r}")
        self._in_src_feats, self._in_dst_feats = pair_of(in_feats)
        self._out_feats = out_feats
        self._aggre_type = aggregator_type
        self.norm = norm
        self.feat_drop = nn.Dropout(feat_drop)
        self.activation = activation
        width = self._in_src_feats
        if aggregator_type == "pool":
            self.fc_pool = nn.Linear(width, width)
        if aggregator_type == "lstm":
            self.lstm = nn.LSTM(width, width, batch_first=True)
        self.fc_neigh = nn.Linear(width, out_feats, bias=False)
        if aggregator_type != "gcn":
            self.fc_self = nn.Linear(self._in_dst_feats, out_feats, bias=bias)
        elif bias:
            self.bias = nn.Parameter(torch.zeros(out_feats))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        gain = relu_gain()
        if self._aggre_type == "pool":
            nn.init.xavier_uniform_(self.fc_pool.weight, gain=gain)
        if self._aggre_type == "lstm":
            self.lstm.reset_parameters()
        if self._aggre_type != "gcn":
            nn.init.xavier_uniform_(self.fc_self.weight, gain=gain)
        nn.init.xavier_uniform_(self.fc_neigh.weight, gain=gain)

    def forward(self, graph, feat, edge_weight: Tensor | None = None) -> Tensor:
        if isinstance(feat, tuple):
            source, destination = self.feat_drop(feat[0]), self.feat_drop(feat[1])
        else:
            source, destination = expand_as_pair(self.feat_drop(feat), graph)
        if self._aggre_type == "gcn":
            out = self._gcn(graph, source, destination, edge_weight)
        else:
            out = self.fc_self(destination) + self._neighbours(graph, source, edge_weight)
        if self.activation is not None:
            out = self.activation(out)
        return out if self.norm is None else self.norm(out)

    def _gcn(self, graph, source: Tensor, destination: Tensor, edge_weight) -> Tensor:
        check_eq_shape((source, destination))
        if self._multiplies_first():
            source, destination = self.fc_neigh(source), self.fc_neigh(destination)
        total = aggregate(graph, source, edge_weight) + destination
        out = total * degree_factor(graph.in_degrees() + 1, total, -1.0)
        if not self._multiplies_first():
            out = self.fc_neigh(out)
        return out if self.bias is None else out + self.bias

    def _neighbours(self, graph, source: Tensor, edge_weight) -> Tensor:
        if self._aggre_type == "pool":
            source = torch.relu(self.fc_pool(source))
            return self.fc_neigh(aggregate(graph, source, edge_weight, "max"))
        if self._aggre_type == "lstm":
            return self.fc_neigh(self._last_state(graph, source, edge_weight))
        if self._multiplies_first():
            return aggregate(graph, self.fc_neigh(source), edge_weight, "mean")
        return self.fc_neigh(aggregate(graph, source, edge_weight, "mean"))

    def _multiplies_first(self) -> bool:
        return self._in_src_feats > self._out_feats

    def _last_state(self, graph, source: Tensor, edge_weight) -> Tensor:
        """A sequence has an order and a length, so this is the one reduction over mailboxes."""
        if graph.num_edges() == 0:
            return source.new_zeros(graph.num_dst_nodes(), self._in_src_feats)
        with graph.local_scope():
            graph.srcdata["h"] = source
            message = fn.copy_u("h", "m")
            if edge_weight is not None:
                graph.edata["w"] = edge_weight
                message = fn.u_mul_e("h", "w", "m")
            graph.update_all(message, self._lstm_reducer)
            return graph.dstdata["neigh"]

    def _lstm_reducer(self, nodes) -> dict[str, Tensor]:
        _, (state, _) = self.lstm(nodes.mailbox["m"])
        return {"neigh": state.squeeze(0)}
