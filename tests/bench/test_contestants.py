"""The contestants compute the same: what is timed against gnnc is the same model."""

from importlib.util import find_spec

import pytest
import torch

from gnnc.bench.contestant import CONTESTANTS, pyg
from gnnc.bench.race import CONTESTANTS as NAMES
from gnnc.bench.race import GRAPHS, MODELS, report
from gnnc.frontend.datasets import power_law
from gnnc.frontend.models import CONVOLUTIONS

WIDTHS = [8, 6, 6, 3]


@pytest.fixture
def data() -> tuple[torch.Tensor, torch.Tensor]:
    task = power_law("small", 50, 300, WIDTHS[0], WIDTHS[-1])
    return torch.from_numpy(task.x), torch.from_numpy(task.edge_index)


def test_names():
    assert tuple(CONTESTANTS) == NAMES
    assert tuple(CONVOLUTIONS) == MODELS


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["gnnc", "pyg-sparse"])
def test_is_the_same_model(name: str, kind: str, data: tuple[torch.Tensor, torch.Tensor]):
    torch.manual_seed(0)
    model, inputs = pyg(kind, WIDTHS, *data)
    torch.manual_seed(0)
    other, other_inputs = CONTESTANTS[name](kind, WIDTHS, *data)
    torch.testing.assert_close(other(*other_inputs), model(*inputs))


@pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")
@pytest.mark.parametrize("kind", MODELS)
def test_dgl_is_the_same_model(kind: str, data: tuple[torch.Tensor, torch.Tensor]):
    x, edge_index = data
    if kind == "gcn":  # DGL normalises by the out-degrees of sources, PyG by their in-degrees
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1).unique(dim=1)
    model, inputs = pyg(kind, WIDTHS, x, edge_index)
    other, other_inputs = CONTESTANTS["dgl"](kind, WIDTHS, x, edge_index)
    with torch.no_grad():
        for a, b in zip(model.convs, other.convs, strict=True):
            if kind == "gcn":
                b.weight.copy_(a.lin.weight.T)
                b.bias.copy_(a.bias.normal_())
            elif kind == "sage":
                b.fc_neigh.weight.copy_(a.lin_l.weight)
                b.fc_self.weight.copy_(a.lin_r.weight)
                b.fc_self.bias.copy_(a.lin_l.bias)
            else:
                b.apply_func.load_state_dict(a.nn.state_dict())
    torch.testing.assert_close(other(*other_inputs), model(*inputs))


def test_report_tells_of_failures_and_of_differing_losses():
    good = {"seconds": [0.1, 0.3], "median_seconds": 0.2, "first_seconds": 1.0}
    good |= {"memory": 2 << 20, "memory_exact": True}
    ours, theirs = {**good, "loss": 1.0}, {**good, "median_seconds": 0.5, "loss": 1.1}
    nodes, edges, features, classes = GRAPHS["tiny"]
    race = {"model": "gcn", "graph": "tiny", "layers": 3, "hidden": 32}
    race |= {"nodes": nodes, "edges": edges, "features": features, "classes": classes}
    race["results"] = {"gnnc": ours, "pyg": theirs, "dgl": {"error": "ended with status 1"}}
    text = report(race, ["gnnc", "pyg", "dgl"])
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.split()}
    assert lines["dgl"] == ["dgl", "failed"]
    assert "2.50" in lines["pyg"]
    assert "the first losses differ" in text
