"""Profiled programs measure their kernels, and the work of a real model is that of its graph."""

import ctypes
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

import gnnc
from gnnc.bench.ceilings import Ceilings
from gnnc.bench.graphs import described
from gnnc.bench.kernels import least, report, share
from gnnc.bench.profiled import Profile

GRAPH = (60, 400, 8, 3)


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_kernels_of_a_model(one_thread: None):
    profile = Profile("gnnc", "gcn", GRAPH, hidden=8, layers=2)
    kernels = profile.kernels()["kernels"]
    names = [k["kernel"] for k in kernels]
    assert names == [k for p in profile.phases for k in p.kernels]
    assert all(k["moved"] > 0 and k["touched"] > 0 for k in kernels)
    answer = profile.train(2)
    assert len(answer["laps"]) == len(kernels)
    for epoch, seconds in enumerate(answer["seconds"]):
        assert 0 < sum(laps[epoch] for laps in answer["laps"]) < seconds


def test_sums_over_edges_count_the_edges(one_thread: None):
    """The last sum of the forward pass: no loops in the graph, and one added for each node."""
    profile = Profile("gnnc", "gcn", GRAPH, hidden=8, layers=2)
    nodes, edges, _, classes = GRAPH
    (last,) = [k for k in profile.kernels()["kernels"] if k["kernel"].startswith("forward")][-1:]
    positions = edges + nodes
    gathered = positions * (4 + 4 * classes)
    own = nodes * 4 * (classes + 1)  # the normalisation, and the result
    assert last["moved"] == gathered + (nodes + 1) * 8 + own + 4 * classes
    assert last["operations"] == positions * classes + 2 * nodes * classes
    assert [positions * 4 * classes, 4 * classes, nodes * 4 * classes] in map(list, last["gathers"])


def test_only_profiled_programs_have_clocks():
    x, edge_index = torch.ones(4, 2), torch.tensor([[0, 1, 2], [1, 2, 3]])
    for wanted in (False, True):
        model: nn.Module = gnnc.compile(GCNConv(2, 3), profile=wanted)
        model(x, edge_index).sum().backward()
        (bound,) = gnnc.explain(model).programs
        for phase in bound.program.phases.values():
            assert (phase.seconds is not None) == wanted
        library = ctypes.CDLL(str(bound.program.path))
        assert hasattr(library, "gnnc_forward_seconds") == wanted
        assert len(bound.graphs()) == 1


FOUND = Ceilings(2, ((2**20, 100e9), (2**30, 10e9)), 200e9)


def test_share_of_the_nearer_ceiling():
    kernel = {"seconds": 0.1, "moved": 5e9, "operations": 2e9, "touched": 2**20}
    assert share(kernel, FOUND).nearer == pytest.approx(0.5)
    assert share(kernel, FOUND).limit == "memory"
    assert share(kernel, FOUND).added == pytest.approx(0.6)
    kernel |= {"operations": 15e9}
    assert share(kernel, FOUND).nearer == pytest.approx(0.75)
    assert share(kernel, FOUND).limit == "arithmetic"


def test_the_least_time_is_that_of_gathers_and_functions():
    found = replace(FOUND, gather=((64, 2**20, 10e9), (64, 2**30, 1e9)), exps=1e9)
    kernel = {"seconds": 2.0, "moved": 3e9, "operations": 2e9, "touched": 2**20}
    plain = 3e9 / 100e9 + 2e9 / 200e9
    assert least(kernel, found) == pytest.approx(plain)
    kernel |= {"gathers": [[1e9, 64, 2**20]], "functions": 5e8}
    assert least(kernel, found) == pytest.approx(plain - 1e9 / 100e9 + 1e9 / 10e9 + 0.5)
    assert share(kernel, found).of_least == pytest.approx(least(kernel, found) / 2)
    assert share(kernel, found).added == pytest.approx(plain / 2)
    assert least(kernel, FOUND) == pytest.approx(plain)  # results of before they were measured


def test_report():
    work = {"touched": 2**30}
    first = {"kernel": "a", "seconds": 0.2, "moved": 1e9, "operations": 0, **work}
    second = {"kernel": "b", "seconds": 0.2, "moved": 2e9, "operations": 4e9, **work}
    result = {**described("gcn", "tiny", 32, 3), "kernels": [first, second], "epoch_seconds": 0.5}
    result["contestant"] = "gnnc"
    lines = report({**result, "ceilings": FOUND.data()}).splitlines()
    cells = {line.split("  ")[0]: line.split() for line in lines if "%" in line}
    assert cells["a"][-4:] == ["memory", "50%", "50%", "50%"]
    assert cells["b"][-4:] == ["memory", "100%", "110%", "110%"]
    assert cells["all kernels"][2:] == ["400.0", "ms", "80.0%", "75%", "80%", "80%"]
    assert cells["elsewhere"][1:] == ["100.0", "ms", "20.0%"]
