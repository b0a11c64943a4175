"""Batch normalisation whose running statistics are means of those of all batches so far."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch_geometric import nn as G

import gnnc


@pytest.mark.parametrize("make", [nn.BatchNorm1d, G.BatchNorm])
def test_means_of_all_batches(make: type[nn.Module]) -> None:
    """In one program, with numbers of eager while batches come and when none does any more."""
    torch.manual_seed(0)
    norm = make(3, momentum=None)
    batches = [torch.randn(n, 3) * n for n in (5, 9, 7)]
    eager, compiled = norm, gnnc.compile(copy.deepcopy(norm), fullgraph=True)
    for x in batches:
        torch.testing.assert_close(compiled(x), eager(x))
        torch.testing.assert_close(compiled.state_dict(), eager.state_dict())
    eager.eval()
    compiled.eval()
    torch.testing.assert_close(compiled(batches[0]), eager(batches[0]))
    torch.testing.assert_close(compiled.state_dict(), eager.state_dict())
    assert gnnc.explain(compiled).fallbacks == []
