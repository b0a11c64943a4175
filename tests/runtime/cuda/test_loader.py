"""Programs on a device, with the emulator in the place of the driver: the same numbers, recorded at
the second call with the same buffers, and replayed from then on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gnnc.dialects.meaning.lowered import results_by_name
from gnnc.frontend.compiler import artifact_of
from gnnc.passes.targets import target_named
from gnnc.runtime.cuda.errors import OutOfDeviceMemory
from gnnc.runtime.cuda.memory import TensorMemory
from gnnc.runtime.cuda.replays import KEPT
from gnnc.runtime.program import PhaseOnGraph, Program
from gnnc.runtime.sets.tables import Tables
from gnnc.tests.codegen.compiled import INFER, Case, after
from gnnc.tests.codegen.shared import LAYERS

from .conftest import Machine
from .emulated_memory import Memory, emulated

PLAN = "fuse-traversals,schedule-grid{threads=64 rows=5 grain=16 chunks=7},cut-stages,plan-memory"


class OnDevice:
    """A layer's program on the emulated device, and the inputs and outputs of its @forward."""

    def __init__(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        split = after(LAYERS["gcn"], INFER)
        final = after(split, f"lower-to-intra,{PLAN}")
        artifact = artifact_of(final, target_named("cuda"))
        self.driver = emulated(artifact, machine, monkeypatch)
        self.case = Case(split, after(split, "lower-to-intra"), Program(artifact))
        self.values = self.case.values(1)
        integers = {n: self.values[n] for n in self.case.program.structure_inputs}
        sets = self.case.sets(self.values)
        rows = {n: x for n, x in integers.items() if n not in sets}
        rows = {n: x for n, x in rows.items() if isinstance(x, np.ndarray)}
        self.graph = self.case.program.on_graph(sets, rows, "cuda:0")
        self.known = {**self.values, **self.graph.rows}
        if "prepare" in self.graph.phases:
            self.known |= self.call(self.graph.phases["prepare"], self.buffers("prepare"))
        self.driver.log.clear()

    def buffers(self, name: str) -> dict[str, NDArray[Any]]:
        """New arrays for the inputs and outputs of a phase, by name."""
        phase = self.graph.phases[name]
        found = {b.name: np.array(self.known[b.name]) for b in phase.phase.inputs}
        for b in phase.phase.outputs:
            found[b.name] = np.zeros((phase.rows[b.slot], *b.row))
        for array in found.values():
            self.driver.emulator.allow(array.ctypes.data, array.nbytes, True)
        return found

    def call(
        self, phase: PhaseOnGraph, arrays: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        places = (*phase.phase.inputs, *phase.phase.outputs)
        phase.call({b.slot: arrays[b.name].ctypes.data for b in places})
        self.driver.emulator.check()
        return {b.name: arrays[b.name] for b in phase.phase.outputs}

    def check(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Call @forward with new numbers in these arrays: it gives what the interpreter does."""
        phase = self.graph.phases["forward"]
        for b in phase.phase.inputs:
            if b.name in self.values:
                arrays[b.name][...] = np.random.default_rng(len(self.driver.log)).normal(
                    size=arrays[b.name].shape
                )
        given = {b.name: arrays[b.name] for b in phase.phase.inputs if b.name in self.values}
        want = results_by_name(self.case.split, self.values | given)
        got = self.call(phase, arrays)
        for name in got:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-9, atol=1e-9)


@pytest.fixture
def on_device(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnDevice]:
    made = OnDevice(machine, monkeypatch)
    # scratch of torch's allocator comes again; here it always does
    scratch = {size: Memory("cuda:0").take(size) for _, size in regions(made)}
    monkeypatch.setattr(Memory, "take", lambda self, size: scratch[size])
    yield made
    made.driver.emulator.forget()


def regions(made: OnDevice) -> list[tuple[int, int]]:
    return made.graph.phases["forward"].placed().rooms


def test_the_second_call_is_recorded_and_later_ones_replayed(on_device: OnDevice) -> None:
    arrays, log = on_device.buffers("forward"), on_device.driver.log
    on_device.check(arrays)
    kernels = log.count("launch")
    assert set(log) == {"launch"} and kernels
    log.clear()
    on_device.check(arrays)
    assert log == ["stream", "begin", "end", "instantiate", "graph destroyed", "replay"]
    log.clear()
    on_device.check(arrays)
    assert log == ["replay"]
    log.clear()
    on_device.check(on_device.buffers("forward"))
    assert log == ["launch"] * kernels


def test_few_recordings_are_kept(on_device: OnDevice) -> None:
    calls = [on_device.buffers("forward") for _ in range(KEPT + 1)]
    for arrays in (*calls, *calls):
        on_device.check(arrays)
    assert on_device.driver.log.count("destroyed") == 1
    on_device.driver.log.clear()
    on_device.check(calls[-1])
    assert on_device.driver.log == ["replay"]


def test_recordings_go_with_their_graph(on_device: OnDevice) -> None:
    arrays, log = on_device.buffers("forward"), on_device.driver.log
    for _ in range(2):
        on_device.check(arrays)
    log.clear()
    on_device.graph.phases.clear()
    assert log == ["destroyed", "stream destroyed"]


def test_what_cannot_be_recorded_says_so(on_device: OnDevice) -> None:
    arrays = on_device.buffers("forward")
    on_device.check(arrays)
    on_device.driver.fails = "instantiate"
    with pytest.raises(OutOfDeviceMemory, match="cuGraphInstantiateWithFlags of forward"):
        on_device.check(arrays)


def test_it_runs_on_no_other_device(on_device: OnDevice) -> None:
    sets = on_device.case.sets(on_device.values)
    with pytest.raises(ValueError, match="runs on CUDA devices, not on cpu"):
        on_device.case.program.on_graph(sets, {})


def test_tables_are_one_graphs(on_device: OnDevice) -> None:
    """A phase has the tables of its graph, in the device's memory."""
    phase = on_device.graph.phases["forward"]
    assert isinstance(on_device.graph.tables, Tables)
    assert all(isinstance(t, TensorMemory) for t in phase.keep) and phase.keep
