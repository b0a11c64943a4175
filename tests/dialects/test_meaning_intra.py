"""The meaning of intra: nests as loops, memory that nobody wrote, and what is out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.lowered import is_lowered, random_values, run_lowered

SETS = """
func.func @structure(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>) {
  func.return
}
"""


def graph(n, src, dst):
    maps = {"src": np.array(src, np.int64), "dst": np.array(dst, np.int64)}
    return {"N": SetVal(n), "g": SetVal(len(src), maps)}


def module(body, sets=SETS):
    text = f"{sets}\nfunc.func @forward() attributes {{intra.phase}} {{\n{body}\n  func.return\n}}"
    return parse_module(text)


SUM = """
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf64>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s, %m = intra.segment %p in %offsets[%i] ["sum", "max"] {
      %e = intra.lookup %members[%p] : index
      %v = intra.load %x[%e] : f64
      intra.yield %v, %v
    } : f64, f64
    intra.store %s, %y[%i]
    intra.store %m, %z[%i]
  }
"""


def test_a_segment_reduces_the_members_of_its_group():
    x = np.array([-1.0, -2.0, -4.0, -8.0])
    got = run_lowered(module(SUM), graph(3, [0, 0, 1, 2], [2, 0, 2, 2]) | {"x": x})
    assert got["y"].tolist() == [-2.0, 0.0, -13.0]
    assert got["z"].tolist() == [-2.0, 0.0, -1.0], "an empty group gives 0"


TOTALS = """
  %s = intra.output {buffer = "s"} : memref<?xi64>
  %m = intra.output {buffer = "m"} : memref<?xi64>
  %p = intra.output {buffer = "p"} : memref<?xi64>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.position %i : i64
    %two = intra.const {value = 2 : i64} : i64
    %b = intra.apply %a, %two {fn = "sub"} : i64
    intra.total %b, %s {kind = "sum"}
    intra.total %b, %m {kind = "min"}
    intra.total %two, %p {kind = "mul"}
  }
"""


@pytest.mark.parametrize(("n", "want"), [(4, (-2, -2, 16)), (0, (0, 0, 1))])
def test_totals(n, want):
    got = run_lowered(module(TOTALS), graph(n, [], []))
    assert (got["s"][0], got["m"][0], got["p"][0]) == want


def test_memory_that_nobody_wrote_is_seen():
    body = """
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x2xf64>
"""
    assert np.isnan(run_lowered(module(body), graph(3, [], []))["y"]).all()


BOUNDS = """
  %y = intra.output {buffer = "y", domain = #intra.domain<g>} : memref<?xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf64>
  %n = intra.size {domain = #intra.domain<g>} : index
  %old = intra.index_map {domain = #intra.domain<g>, path = "old"} : memref<?xi32>
  intra.traverse %i in %n {
    %j = intra.lookup %old[%i] : index
    %c = intra.const {value = 9.0 : f64} : f64
    %v = intra.load %x[%j] ELSE : f64
    intra.store %v, %y[%i]
  }
"""
PARTIAL = """
func.func @structure(%N : !inter.set<N>, %g : !inter.set<g, old: N partial>) {
  func.return
}
"""


def test_a_load_reads_else_where_there_is_no_row():
    values = {
        "N": SetVal(2),
        "g": SetVal(3, {"old": np.array([1, -1, 0])}),
        "x": np.array([5.0, 7.0]),
    }
    with_else = module(BOUNDS.replace("ELSE", "else %c"), PARTIAL)
    assert run_lowered(with_else, values)["y"].tolist() == [7.0, 9.0, 5.0]
    with pytest.raises(IndexError, match="a load: row -1 of 2"):
        run_lowered(module(BOUNDS.replace("ELSE", ""), PARTIAL), values)


def test_what_is_missing_or_does_not_fit_is_said():
    sets = graph(3, [0], [1])
    with pytest.raises(KeyError, match="reads 'x': no earlier phase or caller gives it"):
        run_lowered(module(SUM), sets)
    with pytest.raises(ValueError, match=r"buffer 'x' has shape \(2,\), the phase needs \(1,\)"):
        run_lowered(module(SUM), sets | {"x": np.zeros(2)})
    with pytest.raises(KeyError, match="@structure needs g"):
        run_lowered(module(SUM), {"N": sets["N"]})


def test_a_view_needs_as_many_rows_as_its_set_has():
    body = """
  %w = intra.input {buffer = "w"} : memref<?x4x2xf64>
  %v = intra.view %w {domain = #intra.domain<N>} : memref<?x2xf64>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x2xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %v[%i] : vector<2xf64>
    intra.store %a, %y[%i]
  }
"""
    w = np.arange(8.0).reshape(1, 4, 2)
    got = run_lowered(module(body), graph(4, [], []) | {"w": w})
    assert np.array_equal(got["y"], w[0])
    with pytest.raises(ValueError, match="the set N has another size than the program says"):
        run_lowered(module(body), graph(3, [], []) | {"w": w})
    values = random_values([module(body)], np.random.default_rng(0))
    assert values["N"].n == 4, "random arguments suit the view"


def test_two_phases_may_not_give_one_name():
    text = """
func.func @prepare() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?xf64>
  func.return
}
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?xf64>
  func.return
}
"""
    both = parse_module(text)
    assert is_lowered(both)
    with pytest.raises(ValueError, match="@forward gives y, which is known already"):
        run_lowered(both, {})
