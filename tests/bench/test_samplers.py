"""`gnnc bench samplers`: its contestants sample the same, and its table, on small graphs."""

import argparse
from typing import Any

import numpy as np
import pytest

from gnnc.bench import samplers
from gnnc.bench.large_graphs import large_power_law, size
from gnnc.frontend.tools.children import Message, Refused

from .real_dgl import needs_dgl

NODES, EDGES = 60, 150
SMALL = ("--sizes", "60x150", "--batch-size", "9", "--fanouts", "4", "3")


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    samplers.add_arguments(parser)
    return parser.parse_args(given)


def sampled(library: str, **more: Any) -> list[int]:
    """The edges of three batches, with fan-outs that take all of a node's."""
    from gnnc.bench import samplers_child

    task: Message = {"nodes": NODES, "fanouts": [99, 98], "threads": 2, "workers": False, **more}
    found = samplers_child.seeds(NODES, 7, 3)
    edge_index = large_power_law(NODES, EDGES)
    return list(samplers_child.LIBRARIES[library](task, edge_index, found)())


def test_samples_are_as_large_as_those_of_dgl():
    needs_dgl()
    wanted = sampled("dgl", rule="every")
    assert len(set(wanted)) > 1
    for workers in (False, True):
        assert sampled("gnnc", rule="every", workers=workers) == wanted
    assert sum(sampled("gnnc", rule="once")) < sum(wanted)


def test_pyg_samples_as_much_or_says_what_it_lacks():
    try:
        found = sampled("pyg", rule="once")
    except Refused as error:
        assert "pyg-lib or torch-sparse" in str(error)
    else:
        assert found == sampled("gnnc", rule="once")


def test_seeds():
    from gnnc.bench.samplers_child import seeds

    found = seeds(20, 8, 5)
    assert found.shape == (5, 8)
    assert all(len(np.unique(row)) == 8 for row in found)
    assert seeds(4, 8, 2).shape == (2, 4)


def test_ratios_are_those_within_a_rule():
    assert {x.base for x in samplers.CONTESTANTS.values()} == {
        *("gnnc", "gnnc-workers", "gnnc-once", "gnnc-once-workers")
    }
    seconds = {"gnnc": 1e-3, "dgl": 3e-3, "gnnc-once": 2e-3}
    result: Message = {
        **{"nodes": NODES, "edges": EDGES, "fanouts": [4, 3], "batch_size": 9, "threads": 2},
        "results": {name: {"seconds": s, "edges": 100.0} for name, s in seconds.items()},
        "absent": {"pyg": "not here"},
    }
    lines = samplers.report(result).splitlines()
    (dgl,) = (line for line in lines if line.startswith("dgl"))
    (once,) = (line for line in lines if line.startswith("gnnc-once"))
    assert "3.00" in dgl and "at every hop" in dgl
    assert "1.00" in once
    assert "pyg is out: not here" in lines


def test_sizes():
    assert size("20x300") == (20, 300)
    for bad in ("20", "0x3", "3x", "ax3", "1x2x3"):
        with pytest.raises(argparse.ArgumentTypeError, match="NODESxEDGES"):
            size(bad)


@pytest.mark.long
def test_in_children():
    needs_dgl()
    (result,) = samplers.measure(arguments(*SMALL, "--turns", "1", "--batches", "3"))
    assert {"gnnc", "dgl", "gnnc-workers", "dgl-workers"} <= set(result["results"])
    assert all(found["seconds"] > 0 for found in result["results"].values())
    assert "9 seeds a batch, fan-outs 4, 3 from the input on" in samplers.report(result)
