"""EdgeConv."""

from __future__ import annotations

from torch import Tensor, nn

from .... import ops
from ....utils import expand_as_pair
from ..helpers import ChecksInDegrees, aggregate_edges


class EdgeConv(ChecksInDegrees, nn.Module):
    """h_i = max_j(Theta (h_i - h_j) + Phi h_i) (Wang et al., Dynamic Graph CNN for Learning on
    Point Clouds, with the ReLU left to the caller and the sign of DGL's code).

    Features (N, in), or a pair, to (N, out); `batch_norm` normalises over the edges. DGLError for
    nodes without incoming edges unless `allow_zero_in_degree`.
    """

    def __init__(
        self,
        in_feat: int,
        out_feat: int,
        batch_norm: bool = False,
        allow_zero_in_degree: bool = False,
    ):
        super().__init__()
        self.batch_norm = batch_norm
        self._allow_zero_in_degree = allow_zero_in_degree
        self.theta = nn.Linear(in_feat, out_feat)
        self.phi = nn.Linear(in_feat, out_feat)
        if batch_norm:
            self.bn = nn.BatchNorm1d(out_feat)

    def forward(self, g, feat) -> Tensor:
        self._check_in_degrees(g)
        source, destination = expand_as_pair(feat, g)
        offsets = self.theta(ops.v_sub_u(g, destination, source))
        messages = ops.e_add_v(g, offsets, self.phi(destination))
        if self.batch_norm:
            messages = self.bn(messages)
        return aggregate_edges(g, messages, "max")
