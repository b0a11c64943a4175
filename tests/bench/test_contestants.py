"""The contestants compute the same: what is timed against gnnc is the same model."""

import re
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from gnnc.bench.contestants import CONTESTANTS, Prepared, Task
from gnnc.bench.graphs import GRAPHS, MODELS, described
from gnnc.bench.race import CONTESTANTS as NAMES
from gnnc.bench.race import fits, report
from gnnc.frontend.children import Refused
from gnnc.frontend.datasets import power_law
from gnnc.frontend.models import CONVOLUTIONS

WIDTHS = [8, 6, 6, 3]


def task(kind: str) -> Task:
    drawn = power_law("small", 50, 300, WIDTHS[0], WIDTHS[-1])
    return Task(kind, WIDTHS, *map(torch.from_numpy, (drawn.x, drawn.edge_index, drawn.y)))


def prepared(name: str, task: Task) -> Prepared:
    torch.manual_seed(0)
    return CONTESTANTS[name](task)


def gradients(model: nn.Module) -> list[torch.Tensor]:
    """In an order that does not depend on how the model holds its parameters."""
    found = [p.grad for p in model.parameters()]
    return sorted(found, key=lambda g: (tuple(g.shape), g.abs().sum().item()))


def test_names():
    assert tuple(CONTESTANTS) == NAMES
    assert tuple(CONVOLUTIONS) == MODELS


OTHERS = [n for n in NAMES if n not in ("pyg", "dgl")]


@pytest.mark.parametrize("name, kind", [(n, k) for n in OTHERS for k in MODELS if fits(n, k)])
def test_is_the_same_model(name: str, kind: str):
    ours, theirs = prepared("pyg", task(kind)), prepared(name, task(kind))
    pairs = []
    for one in (ours, theirs):
        loss = one.loss()
        loss.backward()
        pairs.append((loss.detach(), gradients(one.model)))
    torch.testing.assert_close(pairs[1], pairs[0])


@pytest.mark.parametrize("name", ["gnnc", "gnnc-step"])
def test_takes_another_graph(name: str):
    here = task("gcn")
    other = here.edge_index.flip(0)[:, ::3]
    expected = prepared("pyg", Task("gcn", WIDTHS, here.x, other, here.y)).loss()
    torch.testing.assert_close(prepared(name, here).loss(other), expected)


def test_floor_refuses_other_models():
    with pytest.raises(Refused, match="GCN of two layers or more"):
        CONTESTANTS["floor"](task("sage"))


@pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")
@pytest.mark.parametrize("kind", MODELS)
def test_dgl_is_the_same_model(kind: str):
    here = task(kind)
    if kind == "gcn":  # DGL normalises by the out-degrees of sources, PyG by their in-degrees
        both = torch.cat([here.edge_index, here.edge_index.flip(0)], 1).unique(dim=1)
        here = Task(kind, WIDTHS, here.x, both, here.y)
    ours, theirs = prepared("pyg", here), prepared("dgl", here)
    with torch.no_grad():
        for a, b in zip(ours.model.convs, theirs.model.convs, strict=True):
            if kind == "gcn":
                b.weight.copy_(a.lin.weight.T)
                b.bias.copy_(a.bias.normal_())
            elif kind == "sage":
                b.fc_neigh.weight.copy_(a.lin_l.weight)
                b.fc_self.weight.copy_(a.lin_r.weight)
                b.fc_self.bias.copy_(a.lin_l.bias)
            else:
                b.apply_func.load_state_dict(a.nn.state_dict())
    torch.testing.assert_close(theirs.loss(), ours.loss())


def test_report_tells_of_failures_and_of_differing_losses():
    good = {"seconds": [0.1, 0.3], "median_seconds": 0.2, "first_seconds": 1.0}
    good |= {"memory": 2 << 20, "memory_exact": True}
    ours, theirs = {**good, "loss": 1.0}, {**good, "median_seconds": 0.5, "loss": 1.1}
    ours["structure_seconds"] = 0.05
    race = {**described("gcn", "tiny", 32, 3), "memory_limit": 3 << 30}
    failed = {"error": "ended with status 1", "out_of_memory": False}
    large = {"error": "took 3.0 GiB, its limit", "out_of_memory": True}
    race["results"] = {"gnnc": ours, "pyg": theirs, "dgl": failed, "floor": large}
    text = report(race)
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.split()}
    assert "gcn, 3 layers of 32, on tiny: 1,000 nodes" in text
    assert "2.50" in lines["pyg"]
    assert "(0.2" in lines["gnnc"]
    assert re.search("^dgl +failed$", text, re.MULTILINE)
    assert re.search("^floor +out of memory$", text, re.MULTILINE)
    assert "floor: took 3.0 GiB, its limit" in text
    assert "may take 3.0 GiB" in text
    assert "the first losses differ" in text


def test_graph_sizes():
    assert all(len(sizes) == 4 and min(sizes) > 0 for sizes in GRAPHS.values())
