"""The contestants compute the same: what is timed against gnnc is the same model."""

import re
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from gnnc.bench.contestant import Contest
from gnnc.bench.contestants import CONTESTANTS, Prepared
from gnnc.bench.graphs import GRAPHS, MODELS, PlainGraph, described
from gnnc.bench.race import CONTESTANTS as NAMES
from gnnc.bench.race import lacks, report
from gnnc.bench.tasks import PlainTask, Task
from gnnc.frontend.tools.children import Refused
from gnnc.frontend.tools.datasets import power_law
from gnnc.frontend.tools.models import CONVOLUTIONS

WIDTHS = [8, 8, 8, 3]
PLAIN = [name for name, model in MODELS.items() if not model.relational]


def task(kind: str) -> PlainTask:
    drawn = power_law("small", 50, 300, WIDTHS[0], WIDTHS[-1])
    x, edge_index, y = map(torch.from_numpy, (drawn.x, drawn.edge_index, drawn.y))
    return PlainTask(kind, WIDTHS, y, x, edge_index)


def prepared(name: str, task: Task) -> Prepared:
    torch.manual_seed(0)
    return CONTESTANTS[name](task)


def gradients(model: nn.Module) -> list[torch.Tensor]:
    """In an order that does not depend on how the model holds its parameters."""
    found = [p.grad for p in model.parameters()]
    return sorted(found, key=lambda g: (tuple(g.shape), g.abs().sum().item()))


def test_names():
    assert tuple(CONTESTANTS) == NAMES
    assert list(CONVOLUTIONS) == PLAIN


def test_a_turn_begins_with_an_epoch_that_is_not_counted():
    contest = Contest("pyg", "gcn", GRAPHS["tiny"].question(None), hidden=8, layers=2)
    steps: list[None] = []
    contest.optimizer.register_step_post_hook(lambda *_: steps.append(None))
    answer = contest.turn(2)
    assert len(steps) == 3
    assert len(answer["seconds"]) == len(answer["losses"]) == 2


@pytest.mark.parametrize("name", ["gnnc", "pyg"])
def test_predictions_have_no_gradients(name: str):
    graph = GRAPHS["tiny"].question(None)
    contest = Contest(name, "gcn", graph, hidden=8, layers=2, inference=True)
    trains = Contest(name, "gcn", graph, hidden=8, layers=2)
    losses = contest.turn(2)["losses"]
    assert losses == pytest.approx([trains.epoch()] * 2, rel=1e-5)
    assert not contest.prepared.model.training
    assert all(p.grad is None for p in contest.prepared.model.parameters())


OTHERS = [n for n in NAMES if n not in ("pyg", "dgl")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name, kind", [(n, k) for n in OTHERS for k in PLAIN if not lacks(n, k)])
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
    other = replace(here, edge_index=here.edge_index.flip(0)[:, ::3])
    expected = prepared("pyg", other).loss()
    torch.testing.assert_close(prepared(name, here).loss(other), expected)


@pytest.mark.parametrize("name, kind", [(n, k) for n in NAMES for k in PLAIN if lacks(n, k)])
def test_refuses_what_there_is_not(name: str, kind: str):
    with pytest.raises(Refused):
        CONTESTANTS[name](task(kind))


def test_heads_that_cannot_share():
    with pytest.raises(Refused, match="hidden: 8 heads of GAT cannot share 12 features"):
        replace(task("gat"), widths=[8, 12, 3]).model()


@pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")
@pytest.mark.parametrize("kind", PLAIN)
def test_dgl_is_the_same_model(kind: str):
    here = task(kind)
    if kind == "gcn":  # DGL normalises by the out-degrees of sources, PyG by their in-degrees
        both = torch.cat([here.edge_index, here.edge_index.flip(0)], 1).unique(dim=1)
        here = replace(here, edge_index=both)
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
            elif kind == "gat":
                b.fc.weight.copy_(a.lin.weight)
                b.attn_l.copy_(a.att_src)
                b.attn_r.copy_(a.att_dst)
                b.bias.copy_(a.bias.normal_())
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
    ours |= {"in_torch": ["the graph: a reason"], "buffers": 7 << 20, "live": 330, "bound": 300}
    race["results"] = {"gnnc": ours, "pyg": theirs, "dgl": failed, "floor": large}
    race["absent"] = {"pyg-fast": "RGCN alone"}
    text = report(race)
    table = text.split("\n\n")[1]
    lines = {line.split()[0]: line.split() for line in table.splitlines()}
    assert "gcn, 3 layers of 32, on tiny: 1,000 nodes" in text
    assert "2.50" in lines["pyg"]
    assert "(0.2" in lines["gnnc"]
    assert lines["gnnc"][-4:-1] == ["7", "MiB", "1.10"] and "7" not in lines["pyg"]
    assert re.search("^dgl +failed$", text, re.MULTILINE)
    assert re.search("^floor +out of memory$", text, re.MULTILINE)
    assert "floor: took 3.0 GiB, its limit" in text
    assert "may take 3.0 GiB" in text
    assert "the first losses differ" in text
    assert "gnnc runs in torch: the graph: a reason" in text
    assert "No such model of pyg-fast (RGCN alone)." in text


def test_graph_sizes():
    for name, graph in GRAPHS.items():
        assert all(count > 0 for count in graph.sizes().values()), name
        assert isinstance(graph, PlainGraph) != graph.relational
