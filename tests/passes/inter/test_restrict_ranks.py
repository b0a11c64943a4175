"""restrict-rows on programs over the rows of ranks: layers on the needed rows of each rank, and
only the messages that these need."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.inter.ranks import AllReduceOp, MoveOp
from gnnc.dialects.inter.types import is_float, set_name
from gnnc.dialects.meaning import SetVal, run
from gnnc.dialects.meaning.check import parse_module
from gnnc.passes.analysis.dependence import structure_ancestors
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.passes.inter.restrict_rows import restrict_rows
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import Exchanges

from ..meaning import changed
from ..programs import GRAPH
from ..random_programs import Drawer
from ..ranked import APART, CUT, IN_CHUNKS, OPTIMIZED, Ranked
from .test_partition import apart, assert_same, function, together
from .test_restrict_rows import LAYERS, MIXED, SUBSETS, layer, on_rows


def restricted(plain: ModuleOp, chunks: int = 1) -> tuple[ModuleOp, int]:
    """A program over parts, in which whatever is read at some rows only is computed there; and how
    many values are."""
    cut = changed(plain, *(CUT if chunks == 1 else IN_CHUNKS))
    count = restrict_rows(function(cut), share=2.0)
    return changed(cut), count


def check(plain: ModuleOp, seed: int, chunks: int = 1) -> int:
    """Values and gradients are those of the program on the whole graph; how many are restricted."""
    cut, count = restricted(plain, chunks)
    whole = changed(plain, AutodiffPass())
    for ranks in (1, 3):
        assert_same(plain, plain, cut, seed, ranks, chunks=chunks)
        assert_same(plain, plain, changed(cut, *APART[:-1]), seed, ranks, apart, chunks)
        assert_same(plain, whole, changed(cut, AutodiffPass()), seed, ranks, chunks=chunks)
    for_one = changed(cut, *OPTIMIZED, *APART)
    early = structure_ancestors(function(for_one))
    assert not any(isinstance(op, AllReduceOp) for op in early), "sets are made without"
    for run_cut in (together, apart):
        assert_same(plain, whole, for_one, seed, 4, run_cut, chunks)
    return count


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    assert check(parse_module(layer(name)), 0) > 12


@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_rows_cross_in_chunks(name: str) -> None:
    assert check(parse_module(layer(name)), 1, chunks=3) > 12


@pytest.mark.long
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_on_more_graphs(name: str, chunks: int) -> None:
    for seed in range(1, 10):
        check(parse_module(layer(name)), seed, chunks)


def of_mask_alone(text: str) -> str:
    """MIXED with its first result, at the rows of a mask."""
    of = "!inter.rows<unit, 4xf64>"
    text = text.replace("(!inter.rows<unit, 4xf64>, !inter.rows<S, 4xf64>) {", of + " {")
    text = text[: text.index("  func.return")] + f"  func.return %r0 : {of}\n}}\n"
    names = tuple(f"  %{n} =" for n in ("vq", "bq", "yq", "oq", "r1", "u1"))
    text = "\n".join(line for line in text.split("\n") if not line.startswith(names))
    return text.replace("%u0, %u1", "%u0, %t")  # ranks have no last row


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(3))
def test_mixed(seed: int) -> None:
    """A value with users in several places, maxima, attention and dropout."""
    assert check(parse_module(of_mask_alone(MIXED)), seed) > 12


def check_random(seeds: range) -> int:
    """How many of the programs that are drawn have a form over parts, and the same meaning."""
    done = 0
    for seed in seeds:
        plain = Drawer(seed).module()
        try:
            check(plain, seed)
            done += 1
        except PassFailedException as error:
            assert "may be on several ranks" in str(error)
    return done


def test_random_programs() -> None:
    assert check_random(range(6)) >= 3


@pytest.mark.long
def test_many_random_programs() -> None:
    assert check_random(range(6, 100)) >= 50


TWO_LAYERS = f"""
func.func @f({GRAPH}, %x : !inter.rows<N, f64> {{inter.needs_grad}}) -> !inter.rows<N, f64> {{
  %a = inter.at %g[src], %x : !inter.rows<g, f64>
  %b = inter.reduce sum %a over %g along dst : !inter.rows<N, f64>
  %c = inter.tanh %b : !inter.rows<N, f64>
  %d = inter.at %g[src], %c : !inter.rows<g, f64>
  %e = inter.reduce sum %d over %g along dst : !inter.rows<N, f64>
  func.return %e : !inter.rows<N, f64>
}}"""


def test_what_no_needed_row_reads_does_not_cross() -> None:
    """The first layer is needed at the sources of the second one's edges alone."""
    module, _ = restricted(parse_module(on_rows(TWO_LAYERS, SUBSETS["mask"])))
    moved = [op for op in function(module).body.block.ops if isinstance(op, MoveOp)]
    ends = {set_name(op.target) for op in moved if is_float(op.type.elem)}
    assert len(ends) == 2 and "N_ghost" not in ends


class Counting(Exchanges):
    """Counts the rows of floats that a rank receives."""

    rows = 0

    def start(self, plan: str, sent: Any, received: Any) -> None:
        if received.dtype == np.float64:
            self.rows += len(received)
        super().start(plan, sent, received)


@pytest.mark.parametrize("kept", [(), (0,), (0, 5)])
def test_rows_that_cross(kept: Sequence[int]) -> None:
    """On a path of nodes, whose odd ones are of another rank, a node of the mask needs what the two
    before it are, and a rank without one needs nothing of its own."""
    plain = parse_module(on_rows(TWO_LAYERS, SUBSETS["mask"]))
    module = changed(restricted(plain)[0], *APART[:-1])
    n = 8
    path = np.arange(n)
    sets = {"N": SetVal(n), "g": SetVal(n, {"src": path, "dst": (path + 1) % n})}
    owner = {"N": path % 2, "g": (path + 1) % 2}
    graph = Ranked(function(plain), 2, sets, owner)
    mask = np.zeros(n, bool)
    mask[list(kept)] = True
    values = graph.arguments(function(module), {"k": mask, "x": np.ones(n)})

    def on_rank(c: Communicator) -> int:
        carrier = Counting(c, graph.peers(c.rank))
        mine = graph.of_rank(function(module), values, c.rank)
        run(module, "f", *mine, carrier=carrier)
        return carrier.rows

    # a node of the mask reads one row of the other rank, and that one row back
    assert sum(virtual.run(2, on_rank)) == 2 * len(kept)
