"""The host's memory in the place of a device's, for programs that the emulator runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from numpy.typing import NDArray

from gnnc.runtime.cuda import loader
from gnnc.runtime.cuda.memory import DeviceMemory, TensorMemory

from .conftest import Machine
from .emulated_driver import EmulatedDriver


class Memory(DeviceMemory):
    """The host's memory under the name of a device, which the emulator may use."""

    driver: EmulatedDriver

    def allowed(self, made: TensorMemory) -> TensorMemory:
        self.driver.emulator.allow(made.address, made.nbytes, True)
        return made

    def upload(self, array: NDArray[Any]) -> TensorMemory:
        return self.allowed(DeviceMemory("cpu").upload(array))

    def take(self, size: int) -> TensorMemory:
        return self.allowed(DeviceMemory("cpu").take(size))


def emulated(artifact: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> EmulatedDriver:
    """The driver that a program finds from now on, whose kernels the emulator runs on stream 5."""
    data = json.loads(artifact)
    driver = EmulatedDriver(data["device"], data["kernels"])
    machine(driver, driver.cupy)
    Memory.driver = driver
    monkeypatch.setattr(loader, "DeviceMemory", Memory)
    monkeypatch.setattr(loader, "current_stream", lambda number: 5)
    return driver
