"""AGNN."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .... import ops
from ....utils import expand_as_pair
from ..helpers import ChecksInDegrees, aggregate


class AGNNConv(ChecksInDegrees, nn.Module):
    """h_i = sum_j softmax_j(beta cos(h_i, h_j)) h_j (Thekumparampil et al., Attention-based Graph
    Neural Network for Semi-Supervised Learning).

    Features (N, *), or a pair, to the same shape. DGLError for nodes without incoming edges unless
    `allow_zero_in_degree`.
    """

    def __init__(
        self, init_beta: float = 1.0, learn_beta: bool = True, allow_zero_in_degree: bool = False
    ):
        super().__init__()
        self._allow_zero_in_degree = allow_zero_in_degree
        beta = torch.tensor([init_beta], dtype=torch.get_default_dtype())
        if learn_beta:
            self.beta = nn.Parameter(beta)
        else:
            self.register_buffer("beta", beta)

    def forward(self, graph, feat) -> Tensor:
        self._check_in_degrees(graph)
        source, destination = expand_as_pair(feat, graph)
        cosines = ops.u_dot_v(graph, F.normalize(source, dim=-1), F.normalize(destination, dim=-1))
        return aggregate(graph, source, ops.edge_softmax(graph, self.beta * cosines))
