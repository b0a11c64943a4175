"""Bytes and operations of small nests, counted by hand."""

from dataclasses import dataclass

import pytest
from xdsl.dialects.func import FuncOp

from gnnc.bench.work import Work, work_of_phase
from gnnc.dialects.meaning.check import parse_module

NODES, EDGES, PAIRS = 10, 30, 12


@dataclass
class FixedSizes:
    """10 nodes, 30 edges, 12 distinct (relation, source) pairs."""

    def rows(self, set_name: str, keys: tuple[str, ...]) -> int:
        return {("N", ()): NODES, ("g", ()): EDGES, ("g", ("rel", "src")): PAIRS}[set_name, keys]

    def groups(self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...]) -> int:
        assert (set_name, keys) == ("g", ())
        return PAIRS if len(along) > 1 else NODES

    def members(self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...]) -> int:
        assert (set_name, keys) == ("g", ())
        return EDGES


BINDINGS = """
  %n = intra.size {domain = #intra.domain<N>} : index
  %ng = intra.size {domain = #intra.domain<g>} : index
  %np = intra.size {domain = #intra.domain<g[rel, src]>} : index
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %W = intra.input {buffer = "W"} : memref<?x4x6xf32>
  %e = intra.input {buffer = "e", domain = #intra.domain<g>} : memref<?x2xf64>
  %z = intra.input {buffer = "z", domain = #intra.domain<N>} : memref<?x2xf64>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x6xf32>
  %s = intra.output {buffer = "s", domain = #intra.domain<N>} : memref<?x4xf32>
  %dW = intra.output {buffer = "dW"} : memref<?x4x6xf32>
  %t = intra.output {buffer = "t"} : memref<?x2xf64>
  %hit = intra.output {buffer = "hit", domain = #intra.domain<g>} : memref<?x2xi1>
  %d = intra.output {buffer = "d", domain = #intra.domain<g>} : memref<?xf64>
  %p = intra.alloc {domain = #intra.domain<g[rel, src]>} : memref<?x4xf32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %pairs = intra.offsets {domain = #intra.domain<g>, along = ["rel", "src"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %via = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  %psrc = intra.index_map {domain = #intra.domain<g[rel, src]>, path = "src"} : memref<?xi32>
"""

GATHER_AND_PRODUCT = """
  intra.traverse %i in %n {
    %sum = intra.segment %q in %offsets[%i] ["sum"] {
      %j = intra.lookup %via[%q] : index
      %v = intra.load %x[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    intra.store %sum, %s[%i]
    %m = intra.matmul %sum, %W {spec = "k,kf->f"} : vector<6xf32>
    intra.store %m, %y[%i]
  }
"""

EDGES_AND_TOTAL = """
  intra.traverse %i in %ng {
    %j = intra.lookup %src[%i] : index
    %a = intra.load %z[%j] : vector<2xf64>
    %b = intra.load %e[%i] : vector<2xf64>
    %again = intra.load %e[%i] : vector<2xf64>
    %c = intra.apply %a, %b {fn = "mul"} : vector<2xf64>
    %f = intra.apply %c, %again {fn = "gt"} : vector<2xi1>
    intra.store %f, %hit[%i]
    intra.total %c, %t {kind = "sum"}
    %k = intra.dot %a, %b {spec = "k,k->"} : f64
    intra.store %k, %d[%i]
  }
"""

OUTER = """
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<4xf32>
    %b = intra.load %y[%i] : vector<6xf32>
    intra.outer %a, %b, %dW {spec = "k,f->kf"}
  }
"""

TWO_LOOKUPS_A_PAIR = """
  intra.traverse %i in %np {
    %j = intra.lookup %psrc[%i] : index
    %count = intra.length %pairs[%i] : i64
    %sum, %last = intra.segment %q in %offsets[%j] ["sum", "last"] {
      %r = intra.lookup %via[%q] : index
      %v = intra.load %x[%r] : vector<4xf32>
      intra.yield %v, %v
    } : vector<4xf32>, vector<4xf32>
    intra.store %sum, %p[%i]
  }
"""

TABLE, OFFSETS = EDGES * 4, (NODES + 1) * 8


@pytest.mark.parametrize(
    "nest, expected",
    [
        (
            GATHER_AND_PRODUCT,
            Work(
                moved=OFFSETS + TABLE + EDGES * 16 + NODES * 16 + 96 + NODES * 24,
                operations=EDGES * 4 + NODES * 2 * 4 * 6,
                touched=OFFSETS + TABLE + NODES * 16 + NODES * 16 + 96 + NODES * 24,
                gathers=((EDGES * 16, 16, NODES * 16),),
            ),
        ),
        (
            EDGES_AND_TOTAL,
            Work(
                moved=TABLE + EDGES * 16 + EDGES * 16 + EDGES * 2 + 16 + EDGES * 8,
                operations=EDGES * 2 + EDGES * 2 + EDGES * 2 + EDGES * 2 * 2,
                touched=TABLE + NODES * 16 + EDGES * 16 + EDGES * 2 + 16 + EDGES * 8,
                gathers=((EDGES * 16, 16, NODES * 16),),
            ),
        ),
        (
            OUTER,
            Work(
                moved=NODES * 16 + NODES * 24 + 96,
                operations=NODES * 2 * 4 * 6,
                touched=NODES * 16 + NODES * 24 + 96,
            ),
        ),
        (
            # three edges a group on average; what `last` takes is no operation
            TWO_LOOKUPS_A_PAIR,
            Work(
                moved=PAIRS * 4 + (PAIRS + 1) * 8 * 2 + 36 * 4 + 36 * 16 + PAIRS * 16,
                operations=36 * 4,
                touched=PAIRS * 4 + (PAIRS + 1) * 8 + OFFSETS + TABLE + NODES * 16 + PAIRS * 16,
                gathers=(((PAIRS + 1) * 8, 8, OFFSETS), (36 * 16, 16, NODES * 16)),
            ),
        ),
    ],
)
def test_nest(nest: str, expected: Work):
    module = parse_module(f"func.func @f() {{{BINDINGS}{nest}  func.return\n}}")
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    assert work_of_phase(func, FixedSizes()) == [expected]


def test_heavy_functions_are_counted_beside_operations():
    text = """
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "exp"} : vector<4xf32>
    %c = intra.apply %b, %b {fn = "mul"} : vector<4xf32>
    intra.store %c, %s[%i]
  }
"""
    module = parse_module(f"func.func @f() {{{BINDINGS}{text}  func.return\n}}")
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    (found,) = work_of_phase(func, FixedSizes())
    assert found == Work(NODES * 32, NODES * 8, NODES * 32, (), NODES * 4)


def test_sum_of_sizes():
    text = """
  %both = intra.sum_sizes %n, %ng : index
  %o = intra.alloc : memref<?x2xf64>
  intra.traverse %i in %both {
    %one = intra.const {value = 1.0 : f64} : vector<2xf64>
    intra.total %one, %t {kind = "sum"}
  }
"""
    module = parse_module(f"func.func @f() {{{BINDINGS}{text}  func.return\n}}")
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    assert work_of_phase(func, FixedSizes()) == [Work(16, (NODES + EDGES) * 2, 16)]
