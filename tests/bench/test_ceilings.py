"""The ceilings are measured with every vector width, and looked up by working set."""

import argparse

import pytest

from gnnc.bench.ceilings import Ceilings, measure, measurements, report

MIB = 2**20


def test_measures():
    found = measure(1, sizes=(64 * 1024, MIB))
    assert [size for size, _ in found.read] == [64 * 1024, MIB]
    assert all(rate > 0 for _, rate in found.read)
    assert found.flops > 0
    assert Ceilings.of(found.data()) == found


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3"])
def test_other_vector_widths(march: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GNNC_MARCH", march)
    assert measure(1, sizes=(64 * 1024,)).flops > 0


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
