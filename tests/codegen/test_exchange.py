"""Programs of one rank of several: the interpreter on ranks that are threads gives what one rank
with the whole graph gives, C gives what the interpreter gives, and a carrier may raise."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.lowered import run_lowered
from gnnc.frontend.compiler import artifact_of
from gnnc.passes.targets.openmp import OPENMP
from gnnc.passes.targets.reference import REFERENCE
from gnnc.runtime.carrier import Alone
from gnnc.runtime.cpu import threads
from gnnc.runtime.program import Program

from .compiled import FINE, Case, after
from .ranks import Rank, on_ranks, parts

SETS = """
func.func @structure(%N : !inter.set<N>, %R : !inter.set<R, owner: N>, %H : !inter.set<H>,
    %gl : !inter.set<gl, src: N, dst: N>, %gr : !inter.set<gr, src: H, dst: N>) {
  func.return
}
"""


def summed(rows: str, by: str, table: str, of: str) -> str:
    """The sum of rows over a group."""
    return f"""
    %{of} = intra.segment %p in {by}[%i] ["sum"] {{
      %j = intra.lookup {table}[%p] : index
      %v = intra.load {rows}[%j] : vector<3xf64>
      intra.yield %v
    }} : vector<3xf64>"""


def read(domain: str, along: str, path: str) -> str:
    """A map at the members of groups."""
    of = f'domain = #intra.domain<{domain}>, along = ["{along}"], path = "{path}"'
    return f"""
  %{domain}_{path}_of = intra.member_map {{{of}}} : memref<?xi32>"""


def group(domain: str, path: str) -> str:
    """The offsets and members of groups."""
    of = f'domain = #intra.domain<{domain}>, along = ["{path}"]'
    return f"""
  %{domain}_{path} = intra.offsets {{{of}}} : memref<?xi64>
  %{domain}_by_{path} = intra.members {{{of}}} : memref<?xi32>"""


TEXT = f"""{SETS}
func.func @forward() attributes {{intra.phase}} {{
  %y = intra.output {{buffer = "y", domain = #intra.domain<N>}} : memref<?x3xf64>
  %z = intra.output {{buffer = "z", domain = #intra.domain<N>}} : memref<?x3xf64>
  %most = intra.output {{buffer = "most"}} : memref<?x3xf64>
  %x = intra.input {{buffer = "x", domain = #intra.domain<N>}} : memref<?x3xf64>
  %n = intra.size {{domain = #intra.domain<N>}} : index
  %r = intra.size {{domain = #intra.domain<R>}} : index
  %h = intra.size {{domain = #intra.domain<H>}} : index
  %owner = intra.index_map {{domain = #intra.domain<R>, path = "owner"}} : memref<?xi32>
  {group("gl", "dst")}{group("gr", "dst")}{group("gr", "src")}{group("R", "owner")}
  {read("gl", "dst", "src")}{read("gr", "dst", "src")}{read("gr", "src", "dst")}
  %e = intra.alloc {{domain = #intra.domain<N>}} : memref<?x3xf64>
  %near = intra.alloc {{domain = #intra.domain<N>}} : memref<?x3xf64>
  %from = intra.alloc {{domain = #intra.domain<R>}} : memref<?x3xf64>
  %to = intra.alloc {{domain = #intra.domain<H>}} : memref<?x3xf64>
  %given = intra.alloc {{domain = #intra.domain<H>}} : memref<?x3xf64>
  %back = intra.alloc {{domain = #intra.domain<R>}} : memref<?x3xf64>
  %total = intra.alloc : memref<?x3xf64>
  intra.traverse %i in %n {{
    %v = intra.load %x[%i] : vector<3xf64>
    %w = intra.apply %v {{fn = "exp"}} : vector<3xf64>
    intra.store %w, %e[%i]
  }}
  intra.traverse %i in %r {{
    %j = intra.lookup %owner[%i] : index
    %v = intra.load %e[%j] : vector<3xf64>
    intra.store %v, %from[%i]
  }}
  intra.move_start %from, %to {{plan = "halo"}}
  intra.traverse %i in %n {{{summed("%e", "%gl_dst", "%gl_src_of", "s")}
    intra.store %s, %near[%i]
  }}
  intra.move_wait %to {{plan = "halo"}}
  intra.traverse %i in %n {{
    %a = intra.load %near[%i] : vector<3xf64>{summed("%to", "%gr_dst", "%gr_src_of", "s")}
    %b = intra.apply %a, %s {{fn = "add"}} : vector<3xf64>
    intra.store %b, %y[%i]
    intra.total %b, %total {{kind = "sum"}}
    intra.total %b, %most {{kind = "max"}}
  }}
  intra.all_reduce %total {{kind = "sum"}}
  intra.all_reduce %most {{kind = "max"}}
  intra.traverse %i in %h {{{summed("%x", "%gr_src", "%gr_dst_of", "s")}
    intra.store %s, %given[%i]
  }}
  intra.move_start %given, %back {{plan = "back"}}
  intra.move_wait %back {{plan = "back"}}
  intra.traverse %i in %n {{{summed("%back", "%R_owner", "%R_by_owner", "s")}
    %f = intra.first : index
    %t = intra.load %total[%f] : vector<3xf64>
    %b = intra.apply %s, %t {{fn = "div"}} : vector<3xf64>
    intra.store %b, %z[%i]
  }}
  func.return
}}
"""
"""y sums e^x over neighbours, most is the largest y; z sums x over the readers on other ranks, by
the sum of all y."""

MODULE = parse_module(TEXT)
FUSED = after(MODULE, f"fuse-traversals,{FINE.format(bytes=16)},cut-stages,plan-memory")
RNG = np.random.default_rng(0)
NODES, EDGES = 30, 90
SRC, DST = RNG.integers(0, NODES, (2, EDGES))
OWNER = np.sort(RNG.integers(0, 2, NODES))
X = RNG.standard_normal((NODES, 3))
VALUES, PLANS = parts(SRC, DST, OWNER, X, 2)


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(MODULE, MODULE, Program(artifact_of(FUSED, OPENMP)))


def interpreted(module, rank: int, carrier: Rank):
    return run_lowered(module, VALUES[rank], carrier)


@pytest.mark.parametrize("module", [MODULE, FUSED], ids=["lowered", "fused"])
def test_two_ranks_give_what_one_gives(module) -> None:
    got = on_ranks(PLANS, lambda k, rank: interpreted(module, k, rank))
    y, z = np.zeros((2, NODES, 3))
    np.add.at(y, DST, np.exp(X)[SRC])
    across = OWNER[SRC] != OWNER[DST]
    np.add.at(z, SRC[across], X[DST[across]])
    np.testing.assert_allclose(np.concatenate([g["y"] for g in got]), y)
    np.testing.assert_allclose(np.concatenate([g["z"] for g in got]), z / y.sum(0))
    for g in got:
        np.testing.assert_allclose(g["most"][0], y.max(0))


def test_c_gives_what_the_interpreter_gives(case: Case) -> None:
    want = on_ranks(PLANS, lambda k, rank: interpreted(MODULE, k, rank))
    ranks: list[Rank] = []

    def run(k: int, rank: Rank):
        ranks.append(rank)
        return case.run(VALUES[k], carrier=rank)

    for a, b in zip(on_ranks(PLANS, run), want, strict=True):
        for name in b:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-9, err_msg=name)
    steps = ["start halo", "wait halo", "sum 1", "max 1", "start back", "wait back"]
    assert [r.called for r in ranks] == [steps, steps]


def test_one_rank_alone(case: Case) -> None:
    values, _ = parts(SRC, DST, np.zeros(NODES, np.int64), X, 1)
    want = run_lowered(MODULE, values[0])
    got = case.run(values[0], carrier=Alone())
    np.testing.assert_allclose(got["y"], want["y"], rtol=1e-9)


ROWS = """
func.func @structure(%N : !inter.set<N>) {
  func.return
}
func.func @forward() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf64>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf64>
  intra.move_start %x, %y {plan = "turn"}
  intra.move_wait %y {plan = "turn"}
  func.return
}
"""


def test_a_plan_of_one_rank() -> None:
    values = {"N": SetVal(3), "x": np.array([1.0, 2.0, 3.0])}
    module = parse_module(ROWS)
    turned = Alone({"turn": np.array([2, 1, 0])})
    assert run_lowered(module, values)["y"].tolist() == [1, 2, 3]
    assert run_lowered(module, values, turned)["y"].tolist() == [3, 2, 1]
    with pytest.raises(ValueError, match="2 are sent to this rank, which is alone"):
        run_lowered(module, values, Alone({"turn": np.array([0, 1])}))


class Broken(Rank):
    """Its first message never comes."""

    def wait(self, plan: str) -> None:
        super().wait(plan)
        raise TimeoutError("nothing came")


def test_what_a_carrier_raises_is_raised_after_the_phase(case: Case) -> None:
    def run(k: int, rank: Rank) -> list[str]:
        broken = Broken(rank.me, rank.queues, rank.plans)
        with pytest.raises(TimeoutError, match="nothing came") as caught:
            case.run(VALUES[k], carrier=broken)
        assert caught.value.__notes__ == ["in @forward: move 0, the wait for plan 'halo'"]
        return broken.called

    assert on_ranks(PLANS, run) == [["start halo", "wait halo"]] * 2, "nothing is called after it"


class Polled(Rank):
    """Counts how often C asks it, and with what."""

    def __init__(self, rank: Rank) -> None:
        super().__init__(rank.me, rank.queues, rank.plans)
        self.asked: list[list[str]] = []
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.count)
        self.poll = ctypes.cast(self.function, ctypes.c_void_p).value or 0
        self.poll_state = 0

    def count(self, comm: int) -> None:
        self.asked.append(self.called.copy())


@pytest.fixture
def one_thread():
    """On rows this few the first thread may find none left."""
    threads.set_num_threads(1)
    yield
    threads.set_num_threads(None)


@pytest.mark.usefixtures("one_thread")
def test_messages_are_polled_while_they_are_under_way(case: Case) -> None:
    def run(k: int, rank: Rank) -> list[list[str]]:
        polled = Polled(rank)
        case.run(VALUES[k], carrier=polled)
        return polled.asked

    for asked in on_ranks(PLANS, run):
        assert asked and all(called == ["start halo"] for called in asked)


def test_a_program_without_carrier_says_so(case: Case) -> None:
    with pytest.raises(ValueError, match="@forward exchanges rows .*: give a carrier"):
        case.run(VALUES[0])


def test_another_target_refuses() -> None:
    message = r"intra\.move_start in @forward: the target reference has no such step"
    with pytest.raises(PassFailedException, match=message):
        artifact_of(FUSED, REFERENCE)
