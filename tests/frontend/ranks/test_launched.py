"""`gnnc.distribute` in processes that `gnnc launch` starts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import gnnc
from gnnc.tests.runtime.ranks.launching import launched, one_at_a_time  # noqa: F401

from .cut_models import graph, net, trained
from .test_lookups import Worded, assert_alike, sgd, worded
from .test_lookups import trained as tables_trained

pytest.importorskip("mpi4py")

SCRIPT = """
import torch
from gnnc.tests.frontend.ranks.cut_models import graph, net, trained
data = graph(200, 900)
model, part = gnnc.distribute(net("sage"), data)
losses = trained(model, part, steps=3)
with torch.no_grad():
    model.eval()
    out = model(part.x, part.edge_index)
torch.save((losses, model.state_dict(), part.n_id, out), f"{sys.argv[1]}/{rank}.pt")
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.long)])
def test_ranks_that_are_processes_train_as_one(tmp_path: Path, ranks: int) -> None:
    result = launched(tmp_path, ranks, SCRIPT, str(tmp_path), options=("--threads", "1"))
    assert result.returncode == 0, result.stderr
    data = graph(200, 900)
    model = gnnc.compile(net("sage"))
    losses = trained(model, data, steps=3)
    model.eval()
    whole = model(data.x, data.edge_index)
    seen = torch.zeros(200, dtype=torch.bool)
    for rank in range(ranks):
        found, state, nodes, out = torch.load(tmp_path / f"{rank}.pt")
        torch.testing.assert_close(found, losses, rtol=0, atol=1e-9)
        torch.testing.assert_close(out, whole[nodes].detach(), rtol=1e-8, atol=1e-8)
        for key, x in model.state_dict().items():
            torch.testing.assert_close(state[key], x, rtol=1e-9, atol=1e-9, msg=key)
        seen[nodes] = True
    assert seen.all()


SHARDED = """
import torch
from gnnc.tests.frontend.ranks.test_lookups import Worded, sgd, trained, worded
losses, state, nodes = trained(Worded(), worded(), sgd, 4)
torch.save((losses, state, nodes), f"{sys.argv[1]}/{rank}.pt")
"""


@pytest.mark.long
def test_tables_are_sharded_over_processes(tmp_path: Path) -> None:
    result = launched(tmp_path, 2, SHARDED, str(tmp_path), options=("--threads", "1"))
    assert result.returncode == 0, result.stderr
    every = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    assert_alike(every, tables_trained(Worded(), worded(), sgd, 4), 1e-11)
