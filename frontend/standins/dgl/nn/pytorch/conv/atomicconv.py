"""Atomic convolution."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..helpers import aggregate


class RadialPooling(nn.Module):
    """exp(-g_k (r - r_k)^2) (cos(pi r / c_k) + 1) / 2, and 0 beyond c_k: distances (E, 1) to (E,
    K).
    """

    def __init__(self, interaction_cutoffs, rbf_kernel_means, rbf_kernel_scaling):
        super().__init__()
        self.interaction_cutoffs = _column(interaction_cutoffs)
        self.rbf_kernel_means = _column(rbf_kernel_means)
        self.rbf_kernel_scaling = _column(rbf_kernel_scaling)

    def forward(self, distances: Tensor) -> Tensor:
        gauss = torch.exp(-self.rbf_kernel_scaling * (distances - self.rbf_kernel_means).square())
        cosine = 0.5 * (torch.cos(math.pi * distances / self.interaction_cutoffs) + 1)
        inside = torch.where(distances <= self.interaction_cutoffs, cosine, 0.0)
        return (gauss * inside).squeeze(-1).T


def _column(values: Tensor) -> nn.Parameter:
    return nn.Parameter(values.reshape(-1, 1, 1))


class AtomicConv(nn.Module):
    """For each radial filter k and type of atom t, p_it^k = sum_j e_ij^k [z_j = t] (Gomes et al.,
    Atomic Convolutional Networks for Predicting Protein-Ligand Binding Affinity).

    Atomic numbers (N, 1) and distances (E, 1) to (N, K * T); without `features_to_use` the numbers
    themselves are weights.
    """

    def __init__(
        self,
        interaction_cutoffs: Tensor,
        rbf_kernel_means: Tensor,
        rbf_kernel_scaling: Tensor,
        features_to_use: Tensor | None = None,
    ):
        super().__init__()
        self.radial_pooling = RadialPooling(
            interaction_cutoffs, rbf_kernel_means, rbf_kernel_scaling
        )
        self.num_channels = 1 if features_to_use is None else len(features_to_use)
        self.features_to_use = None
        if features_to_use is not None:
            self.features_to_use = nn.Parameter(features_to_use, requires_grad=False)

    def forward(self, graph, feat: Tensor, distances: Tensor) -> Tensor:
        radial = self.radial_pooling(distances).to(feat)
        if self.features_to_use is not None:
            feat = (feat == self.features_to_use).to(feat)
        return aggregate(graph, feat.unsqueeze(-1), radial.unsqueeze(1)).flatten(1)
