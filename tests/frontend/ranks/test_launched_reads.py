"""Kernels of processes that `gnnc launch` starts read rows of other ranks where they lie, on the
emulated GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import gnnc
from gnnc.tests.runtime.ranks.launching import launched, one_at_a_time  # noqa: F401

from .cut_models import graph, net
from .test_exported_reads import READS, assert_same, exercised

pytest.importorskip("mpi4py")

LONG = pytest.mark.long
SCRIPT = """
import torch
from gnnc.runtime.emulator.memory import device_pool
from gnnc.tests.frontend.ranks.cut_models import net
from gnnc.tests.frontend.ranks.test_exported_reads import of_rank
from gnnc.tests.frontend.ranks.test_launched_reads import CASES
out = {}
for case in sys.argv[2:]:
    name, data, owner = CASES[case](size)
    before = device_pool.release if case == "moving" else lambda: None
    model = net(name)
    torch.manual_seed(5)
    out[case] = of_rank(model, data, owner, before=before)
torch.save(out, f"{sys.argv[1]}/{rank}.pt")
"""
Case = tuple[str, Data, Tensor | None]
CASES: dict[str, Callable[[int], Case]] = {
    "gcn": lambda _: ("gcn", graph(30, 120), None),
    "gat": lambda _: ("gat", graph(30, 120), None),
    "moving": lambda _: ("gcn", graph(30, 120), None),
    "empty": lambda ranks: ("gcn", graph(30, 120), torch.arange(30) % 2 * (ranks - 1) // 2 * 2),
    "few": lambda _: ("gat", few(), None),
}
"""What ranks train on: a model, a graph, and whose nodes are whose."""


def few() -> Data:
    """Fewer nodes than ranks may be."""
    data = graph(2, 3)
    data.train_mask[:] = True
    return data


def check_processes(
    folder: Path, ranks: int, monkeypatch: pytest.MonkeyPatch, *cases: str, options: Any = ()
) -> None:
    monkeypatch.setenv("GNNC_TARGET", "cuda-emulated")
    options = ("--threads", "1", *options)
    result = launched(folder, ranks, SCRIPT, str(folder), *cases, options=options, timeout=500)
    assert result.returncode == 0, result.stderr
    every = [torch.load(folder / f"{rank}.pt") for rank in range(ranks)]
    monkeypatch.delenv("GNNC_TARGET")
    for case in cases:
        name, data, _ = CASES[case](ranks)
        model = gnnc.compile(net(name))
        torch.manual_seed(5)
        want = exercised(model, data)
        assert_same([found[case] for found in every], want)
        assert all(found[case][2] == READS for found in every)


def test_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_processes(tmp_path, 2, monkeypatch, "moving")


@LONG
def test_two_processes_of_which_one_has_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_processes(tmp_path, 2, monkeypatch, "gat", "empty", options=("--transport", "mpi"))


@LONG
def test_three_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_processes(tmp_path, 3, monkeypatch, "gcn", "gat", "empty", "few")
