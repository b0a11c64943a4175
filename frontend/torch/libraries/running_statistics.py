"""Batch normalisation whose running statistics are means of those of all batches so far.

torch makes a Python number of how many batches there were, and so reads a tensor: a trace ends
there. Traced for us the share of a batch stays a tensor.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from .active import is_active
from .replaced_methods import replace


@functools.cache
def install() -> None:
    """Has `momentum=None` traced without that number."""
    plain = _BatchNorm.forward

    def forward(self: _BatchNorm, input: Tensor) -> Tensor:
        traced = is_active() and torch.compiler.is_compiling()
        if traced and self.training and self.track_running_stats and self.momentum is None:
            if self.num_batches_tracked is not None and self.running_mean is not None:
                return _averaging(self, input)
        return plain(self, input)

    replace(_BatchNorm, "forward", forward)


def _averaging(norm: _BatchNorm, x: Tensor) -> Tensor:
    """What a layer gives in training, and its statistics of one batch more."""
    norm._check_input_dim(x)
    norm.num_batches_tracked.add_(1)
    share = (1.0 / norm.num_batches_tracked.double()).to(norm.running_mean.dtype)
    batch = norm.running_mean.clone(), norm.running_var.clone()
    y = F.batch_norm(x, *batch, norm.weight, norm.bias, True, 1.0, norm.eps)
    for kept, new in zip((norm.running_mean, norm.running_var), batch, strict=True):
        kept.copy_(kept * (1.0 - share) + new * share)
    return y
