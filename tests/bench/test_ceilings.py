"""The ceilings are measured with every vector width, and looked up by working set."""

import argparse

import numpy as np
import pytest

from gnnc.bench import ceilings
from gnnc.bench.ceilings import Ceilings, measure, measurements, report
from gnnc.runtime.cpu import toolchain

MIB = 2**20


def test_measures():
    found = measure(1, sizes=(64 * 1024, MIB))
    assert [size for size, _ in found.read] == [64 * 1024, MIB]
    assert all(rate > 0 for _, rate in found.read)
    assert [(row, table) for row, table, _ in found.gather] == [(64, MIB), (256, MIB)]
    assert all(rate > 0 for _, _, rate in found.gather)
    assert found.flops > 0
    assert found.exps > 0
    assert Ceilings.of(found.data()) == found


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3"])
def test_other_vector_widths(march: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GNNC_MARCH", march)
    assert measure(1, sizes=(64 * 1024,)).flops > 0


@pytest.mark.parametrize(("march", "fused"), [("x86-64", False), ("x86-64-v3", True)])
def test_products_are_those_of_kernels(march: str, fused: bool, monkeypatch: pytest.MonkeyPatch):
    """Rounded once where the machine has an instruction for that, and so twice as fast."""
    monkeypatch.setenv("GNNC_MARCH", march)
    library, sums, rounds = ceilings._library(), np.zeros(1, np.float32), 40
    library.gnnc_multiply_add(rounds, 1, sums.ctypes.data)
    operations = library.gnnc_round_flops() // 2
    lanes = toolchain.vector_bytes() // 4
    wanted = np.arange(operations // lanes, dtype=np.float32)
    factor, term = np.float32(0.999), np.float32(0.001)
    for _ in range(rounds):
        if fused:  # no product of two floats has more digits than a double
            wanted = (wanted.astype(np.float64) * factor + term).astype(np.float32)
        else:
            wanted = wanted * factor + term
    total = np.float32(0)
    for one in np.repeat(wanted[:, None], lanes, 1):
        of_vector = np.float32(0)
        for number in one:
            of_vector += number
        total += of_vector
    assert sums[0] == total


def test_bandwidth_between_sizes():
    found = Ceilings(2, ((MIB, 80.0), (4 * MIB, 40.0), (64 * MIB, 20.0)), 1.0)
    assert found.bandwidth(1) == 80.0
    assert found.bandwidth(2 * MIB) == pytest.approx(60.0)
    assert found.bandwidth(16 * MIB) == pytest.approx(30.0)
    assert found.bandwidth(2**40) == 20.0
    better = found.higher(Ceilings(2, ((MIB, 70.0), (4 * MIB, 50.0), (64 * MIB, 10.0)), 3.0))
    assert better == Ceilings(2, ((MIB, 80.0), (4 * MIB, 50.0), (64 * MIB, 20.0)), 3.0)


def test_report():
    found = Ceilings(2, ((64 * 1024, 80e9), (4 * MIB, 40e9)), 300e9)
    assert report(found.data()).splitlines() == [
        "2 threads; 300 GFLOP/s of float32",
        "",
        "working set  GB/s",
        "-----------  ----",
        "64 KiB       80.0",
        "4 MiB        40.0",
    ]


def test_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gnnc.bench.ceilings.measure", lambda threads: Ceilings(threads, (), 1.0))
    (result,) = measurements(argparse.Namespace(threads=3))
    assert result["threads"] == 3


@pytest.mark.parametrize("wide", [False, True])
def test_gathers_read_every_row(wide: bool):
    """Of rows that lie anywhere, once in each round."""
    library, rows, width = ceilings._library(), 500, 64 if wide else 16
    data = np.arange(rows * width, dtype=np.float32).reshape(rows, width) % 97
    order = np.random.default_rng(0).integers(rows, size=300 + ceilings.AHEAD, dtype=np.int32)
    for threads in (1, 2):
        sums = np.zeros(threads, np.float32)
        given = data.ctypes.data, order.ctypes.data, 300, wide
        library.gnnc_gather(*given, 2, threads, sums.ctypes.data)
        assert sums.sum() == 2 * data[order[:300]].sum(dtype=np.float64)


def test_gathers_between_widths_and_tables():
    gather = ((64, MIB, 80.0), (64, 4 * MIB, 40.0), (256, MIB, 160.0), (256, 4 * MIB, 80.0))
    found = Ceilings(2, ((MIB, 200.0),), 1.0, gather, 1.0)
    assert found.gathered(64, 2 * MIB) == pytest.approx(60.0)
    assert found.gathered(128, MIB) == pytest.approx(120.0)
    assert found.gathered(1024, 8 * MIB) == pytest.approx(80.0)
    assert found.gathered(16, MIB) == pytest.approx(20.0)  # a quarter of a line
    assert Ceilings(2, ((MIB, 200.0),), 1.0).gathered(64, MIB) == 200.0


def test_exp_is_computed_of_every_number():
    library, sums = ceilings._library(), np.zeros(1, np.float32)
    library.gnnc_exp(3, 1, sums.ctypes.data)
    x = np.arange(library.gnnc_round_exps(), dtype=np.float32) * np.float32(-0.01)
    assert sums[0] == pytest.approx(3 * np.exp(x.astype(np.float64)).sum(), rel=1e-5)
