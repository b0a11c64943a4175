"""Twenty models in the style of DGL's examples train with equal losses in DGL, compiled with dgl
installed, and compiled without it.
"""

from __future__ import annotations

import copy
import importlib

import pytest
import torch

import gnnc
from gnnc.bench.dgl_shim import install

from .families import FAMILIES, losses

install()
dgl = pytest.importorskip("dgl", reason="dgl has no wheel for this Python or machine")
importlib.import_module("dgl.nn.pytorch")


QUICK = {"gcn", "sage-pool", "gat", "rgcn-hetero", "hgt", "attention-graphs", "links", "blocks"}


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in FAMILIES]
)
def test_losses(name: str) -> None:
    torch.manual_seed(0)
    eager = FAMILIES[name](dgl)
    state = copy.deepcopy(eager.model.state_dict())
    expected = losses(eager, eager.model)
    assert expected[-1] < expected[0]
    for library in (dgl, importlib.import_module("gnnc.dgl")):
        family = FAMILIES[name](library)
        family.model.load_state_dict(state)
        compiled = gnnc.compile(family.model)
        found = losses(family, compiled)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
        report = gnnc.explain(compiled)
        assert report.fallbacks == []
        assert len(report.programs) == 1
