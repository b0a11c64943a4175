"""Phases on a device that exchange rows: by messages through the host, and read where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.lowered import run_lowered
from gnnc.frontend.compiler import artifact_of
from gnnc.passes.targets import target_named
from gnnc.runtime.carrier import Alone
from gnnc.runtime.cuda.errors import LaunchFailed
from gnnc.runtime.program import Program
from gnnc.tests.codegen.compiled import Case, after
from gnnc.tests.codegen.test_exchange import MODULE

from .conftest import Machine
from .emulated_memory import emulated

FUSE = "fuse-traversals{target=cuda}"
PLAN = "schedule-grid{threads=64 rows=5 grain=16 chunks=7},cut-stages,plan-memory"
NODES, EDGES, SENT = 20, 50, 8


def values() -> dict[str, Any]:
    """A rank that reads rows of its own as if they were another's."""
    rng = np.random.default_rng(3)
    ends = [rng.integers(0, n, EDGES) for n in (NODES, NODES, SENT, NODES)]
    return {
        "N": SetVal(NODES),
        "R": SetVal(SENT, {"owner": rng.integers(0, NODES, SENT)}),
        "H": SetVal(SENT),
        "gl": SetVal(EDGES, {"src": ends[0], "dst": ends[1]}),
        "gr": SetVal(EDGES, {"src": ends[2], "dst": ends[3]}),
        "x": rng.standard_normal((NODES, 3)),
    }


class OnDevice:
    """The program on the emulated device."""

    def __init__(self, machine: Machine, monkeypatch: pytest.MonkeyPatch, passes: str) -> None:
        module = after(MODULE, f"{passes},{PLAN}")
        artifact = artifact_of(module, target_named("cuda"))
        self.driver = emulated(artifact, machine, monkeypatch)
        case = Case(MODULE, module, Program(artifact))
        self.values = values()
        sets = case.sets(self.values)
        self.phase = case.program.on_graph(sets, {}, "cuda:0", Alone()).phases["forward"]

    def run(self) -> dict[str, Any]:
        """What the phase gives."""
        outputs = self.phase.phase.outputs
        out = {b.name: np.zeros((self.phase.rows[b.slot], *b.row)) for b in outputs}
        arrays = {"x": self.values["x"], **out}
        for array in arrays.values():
            self.driver.emulator.allow(array.ctypes.data, array.nbytes, True)
        places = (*self.phase.phase.inputs, *outputs)
        self.phase.call({b.slot: arrays[b.name].ctypes.data for b in places})
        self.driver.emulator.check()
        self.driver.emulator.forget()
        return out


@pytest.mark.parametrize(
    "passes",
    [
        FUSE,
        f"publish-rows,{FUSE}",
        f"publish-rows,{FUSE},build-pipeline",
        f"publish-rows,publish-totals,{FUSE}",
    ],
)
def test_rows_of_others_reach_the_device(
    passes: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_device = OnDevice(machine, monkeypatch, passes)
    want, got = run_lowered(MODULE, on_device.values), on_device.run()
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-9, err_msg=name)
    log = on_device.driver.log
    assert "begin" not in log, "what exchanges rows is recorded"
    # two sums over all ranks, or a table for each; and moves, or two tables a publication
    moved = 2 if "publish-rows" not in passes else 0
    summed = 2 if "publish-totals" not in passes else 0
    assert (log.count("to host"), log.count("to device")) == (summed + moved, 2 + (moved or 4))


def test_a_copy_that_fails_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    on_device = OnDevice(machine, monkeypatch, FUSE)
    on_device.driver.fails = "to host"
    with pytest.raises((LaunchFailed, MemoryError), match="cuMemcpyDtoH_v2 of rows of @forward"):
        on_device.run()
