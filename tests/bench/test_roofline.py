"""Predictions for GPUs: known counts of a nest with a grid, times from the figures of a device, and
a real model on a tiny graph."""

import argparse
from dataclasses import astuple

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from gnnc.bench import devices, roofline
from gnnc.bench.command import PARTS
from gnnc.bench.devices import DEVICES, Device
from gnnc.bench.grid_work import GridWork, grid_work_of
from gnnc.bench.roofline import predict
from gnnc.bench.work import Access, accesses_of
from gnnc.dialects.intra import rows
from gnnc.dialects.meaning.check import parse_module
from gnnc.frontend.tools.children import Message
from gnnc.passes.driver.pipelines import passes_of

NODES, EDGES, RELATIONS, PIECES = 1000, 7000, 12, 5


class FixedSizes:
    """1000 nodes, 7000 edges of 12 relations, five pieces of long groups."""

    def rows(self, set_name: str, keys: tuple[str, ...]) -> int:
        return {"N": NODES, "g": EDGES, "R": RELATIONS}[set_name]

    def groups(self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...]) -> int:
        return NODES

    def members(self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...]) -> int:
        return EDGES

    def pieces(
        self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...], piece: int
    ) -> int:
        assert piece == 128
        return PIECES


BINDINGS = """
  %n = intra.size {domain = #intra.domain<N>} : index
  %ng = intra.size {domain = #intra.domain<g>} : index
  %nr = intra.size {domain = #intra.domain<R>} : index
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %W = intra.input {buffer = "W"} : memref<?x4x6xf32>
  %Ws = intra.input {buffer = "Ws", domain = #intra.domain<R>} : memref<?x4x6xf32>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x6xf32>
  %s = intra.output {buffer = "s", domain = #intra.domain<N>} : memref<?x4xf32>
  %dW = intra.output {buffer = "dW"} : memref<?x4x6xf32>
  %t = intra.output {buffer = "t"} : memref<?x4xf32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %via = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
"""

AGGREGATION = """
  intra.traverse %i in %n {
    %sum = intra.segment %q in %offsets[%i] ["sum"] {
      %j = intra.lookup %via[%q] : index
      %v = intra.load %x[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    intra.store %sum, %s[%i]
  }
"""

PRODUCT = """
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<4xf32>
    %m = intra.matmul %a, %W {spec = "k,kf->f"} : vector<6xf32>
    intra.store %m, %y[%i]
  }
"""

SUMS = """
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<4xf32>
    %b = intra.load %y[%i] : vector<6xf32>
    intra.outer %a, %b, %dW {spec = "k,f->kf"}
    intra.total %a, %t {kind = "sum"}
  }
"""


def on_a_grid(text: str) -> rows.TraverseOp:
    """The nest of a text, scheduled as for CUDA."""
    module = parse_module(
        f"func.func @forward() attributes {{intra.phase}} {{{BINDINGS}{text}  func.return\n}}"
    )
    assert isinstance(module, ModuleOp)
    for one in passes_of("schedule-grid{target=cuda},cut-stages,plan-memory"):
        one.apply(Context(), module)
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    (nest,) = rows.nests(func)
    return nest


def test_an_aggregation():
    nest = on_a_grid(AGGREGATION)
    # 1000 groups of cost 4 and 7000 edges, about 2048 units a block; pieces are written and read
    assert grid_work_of(nest, FixedSizes()) == GridWork(2, 6, 2 * PIECES * 16, 0)
    accesses, operations = accesses_of(nest, FixedSizes())
    assert operations == EDGES * 4
    assert sorted(accesses, key=lambda a: a.moved) == [
        Access((NODES + 1) * 8, 8, (NODES + 1) * 8, False),
        Access(NODES * 16, 16, NODES * 16, False),
        Access(EDGES * 4, 4, EDGES * 4, False),
        Access(EDGES * 16, 16, NODES * 16, True),
    ]


def test_pieces_that_there_are_none_of_are_not_launched(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FixedSizes, "pieces", lambda *_: 0)
    assert grid_work_of(on_a_grid(AGGREGATION), FixedSizes()).launches == 1


def test_a_product():
    nest = on_a_grid(PRODUCT)
    found = grid_work_of(nest, FixedSizes())
    # 1000 rows of cost 4 are 2 blocks of 500, which are 8 tiles of 64 rows
    assert found == GridWork(1, 2, 0, 2 * 8 * 96)


def test_sums_of_blocks():
    found = grid_work_of(on_a_grid(SUMS), FixedSizes())
    assert (found.launches, found.blocks) == (2, 2)
    assert found.handed_on == 2 * 2 * (96 + 16)


def test_no_rows_no_launch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FixedSizes, "rows", lambda *_: 0)
    assert grid_work_of(on_a_grid(PRODUCT), FixedSizes()) == GridWork(0, 0, 0, 0)


# ---------------------------------------------------------------- times

DEVICE = Device("a GPU", memory=1e12, l2=2**20, near=4e12, flops=10e12, multiprocessors=10)
MUCH = 1e9


def kernel(*accesses: Access, **fields: float) -> Message:
    usual = {"operations": 0.0, "launches": 0, "blocks": 10, "handed_on": 0.0, "reread": 0.0}
    return {**usual, **fields, "accesses": [astuple(a) for a in accesses]}


def test_streams_take_their_bytes():
    found = predict(kernel(Access(MUCH, 4, MUCH, False), handed_on=MUCH), DEVICE)
    assert found.streamed == 2 * MUCH
    assert found.seconds == pytest.approx(2 * MUCH / (devices.COPY_SHARE * 1e12))
    assert found.limit == "streams"


@pytest.mark.parametrize("row", [1, 4, 8, 12, 16, 32, 36, 64, 68, 128, 160, 1000])
def test_a_narrow_row_is_never_faster_than_its_bytes(row: int):
    count = 1e7
    for device in (DEVICE, *DEVICES.values()):
        far = Access(count * row, row, 1e12, True)
        near = Access(count * row, row, 1e5, True)
        assert predict(kernel(far), device).seconds >= far.moved / device.copy
        assert predict(kernel(near), device).seconds >= near.moved / device.near
        assert predict(kernel(near), device).seconds < predict(kernel(far), device).seconds
        # and as many rows that are wider do not take less
        wider = Access(count * 2 * row, 2 * row, 1e12, True)
        assert predict(kernel(wider), device).seconds >= predict(kernel(far), device).seconds


def test_rows_that_fit_the_l2_are_apart():
    fits = Access(MUCH, 64, DEVICE.gathers_fit, True)
    found = predict(kernel(fits), DEVICE)
    assert (found.far, found.near, found.streamed) == (0, MUCH, DEVICE.gathers_fit)
    over = Access(MUCH, 64, DEVICE.gathers_fit + 1, True)
    found = predict(kernel(over), DEVICE)
    assert (found.far, found.near, found.streamed) == (MUCH, 0, 0)
    assert found.limit == "gathers from memory"


def test_the_longer_of_bytes_and_operations_counts():
    stream = Access(MUCH, 4, MUCH, False)
    found = predict(kernel(stream, operations=1e11, launches=3), DEVICE)
    assert found.seconds == pytest.approx(1e11 / (devices.FLOPS_SHARE * 10e12) + 3 * 2e-6)
    assert found.limit == "operations"
    assert sum(found.causes().values()) == pytest.approx(found.seconds)


def test_one_block_has_one_multiprocessor():
    stream = Access(MUCH, 4, MUCH, False)
    one, all_ = (predict(kernel(stream, blocks=n), DEVICE).seconds for n in (1, 10))
    assert one == pytest.approx(10 * all_)
    assert predict(kernel(stream, blocks=1000), DEVICE).seconds == all_


# ---------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def result() -> Message:
    parser = argparse.ArgumentParser()
    roofline.add_arguments(parser)
    args = parser.parse_args(["--models", "gcn", "--graphs", "tiny", "--layers", "2"])
    (found,) = roofline.measure(args)
    return found


def test_a_model(result: Message):
    phases = [k["phase"] for k in result["kernels"]]
    assert sorted(set(phases)) == ["backward", "forward"]
    (last,) = [k for k in result["kernels"] if k["phase"] == "forward"][-1:]
    gathered = [a for a in (Access(*fields) for fields in last["accesses"]) if a.gathered]
    # the sum of the classes' four numbers over 7000 edges and a loop a node
    assert [(a.moved, a.row, a.whole) for a in gathered] == [(8000 * 16, 16, 16000)]
    assert all(k["launches"] >= 1 and k["blocks"] >= 1 for k in result["kernels"])


def test_report(result: Message):
    text = roofline.report(result)
    assert text.index("PREDICTION for H100 SXM: nothing was measured") < text.index("kernel  ")
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    device = DEVICES["h100"]
    whole = sum(predict(k, device).seconds for k in result["kernels"])
    assert f"{whole * 1e6:,.1f} µs" in lines["a step"] and "100.0%" in lines["a step"]
    for phase in ("forward", "backward"):
        own = [predict(k, device).seconds for k in result["kernels"] if k["phase"] == phase]
        assert f"{sum(own) * 1e6:,.1f} µs" in lines[f"all of {phase}"]
    assert "kernels: segment" in text and "spent on: launches" in text
    assert "| a step" in roofline.report(result, markdown=True)


def test_predictions_are_no_results():
    assert [p.name for p in PARTS if not p.measured] == ["roofline", "pipeline"]
