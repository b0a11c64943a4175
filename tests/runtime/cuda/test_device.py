"""Each thing that a machine may lack for CUDA has an error that says what to do."""

from __future__ import annotations

import builtins
import subprocess
import sys
import types
from typing import Any

import pytest

from gnnc.runtime.cuda.device import (
    check_device,
    cupy,
    current_stream,
    memory_errors,
    why_not,
)
from gnnc.runtime.cuda.driver import Device, driver
from gnnc.runtime.cuda.errors import (
    CudaError,
    DeviceTooOld,
    LaunchFailed,
    MixedDevices,
    NoCupy,
    NoDevice,
    NoToolkit,
    OutOfDeviceMemory,
    WrongToolkit,
    check_one_device,
)

from .conftest import Machine
from .fakes import FakeCupy, FakeDriver, OutOfMemoryError

H100 = ("H100", (9, 0))
T4 = ("T4", (7, 5))


def test_a_machine_that_has_all(machine: Machine) -> None:
    machine(FakeDriver(13000, [H100, ("A100", (8, 0))]), FakeCupy())
    assert check_device() == Device(0, "H100", (9, 0))
    assert check_device(1).arch == "sm_80"
    assert why_not() is None
    assert [d.arch for d in driver().devices()] == ["sm_90", "sm_80"]
    assert driver().launch_address() > 0


def test_no_driver(machine: Machine) -> None:
    machine(None, FakeCupy())
    with pytest.raises(NoDevice, match="no NVIDIA driver .*libcuda.so.1.*target openmp"):
        check_device()
    assert "no NVIDIA driver" in str(why_not())


def test_no_device(machine: Machine) -> None:
    machine(FakeDriver(13000, [], status=100), FakeCupy())
    with pytest.raises(NoDevice, match=r"CUDA 13\.0\) finds no device: CUDA_ERROR_NO_DEVICE"):
        check_device()
    machine(FakeDriver(13000, [], status=999), FakeCupy())
    with pytest.raises(NoDevice, match="cannot be used: CUresult 999"):
        check_device()


def test_no_device_of_this_number(machine: Machine) -> None:
    machine(FakeDriver(13000, [H100]), FakeCupy())
    with pytest.raises(NoDevice, match="no device 1: CUDA counts 1, from 0"):
        check_device(1)


def test_a_device_that_is_too_old(machine: Machine) -> None:
    machine(FakeDriver(13000, [T4, H100]), FakeCupy())
    with pytest.raises(DeviceTooOld, match=r"T4 has compute capability 7\.5, .* 8\.0"):
        check_device()
    assert why_not(1) is None


@pytest.mark.parametrize(("version", "extra"), [(13010, "cuda13"), (12040, "cuda12")])
def test_no_cupy(machine: Machine, version: int, extra: str) -> None:
    machine(FakeDriver(version, [H100]), None)
    with pytest.raises(NoCupy, match=rf"cupy.*pip install gnnc\[{extra}\]"):
        check_device()


def raising(monkeypatch: pytest.MonkeyPatch, error: ImportError) -> None:
    """Lets the import of cupy raise."""
    real = builtins.__import__

    def fail(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "cupy":
            raise error
        return real(name, *args, **kwargs)

    monkeypatch.setattr("importlib.import_module", fail)


def test_a_broken_cupy_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, ModuleNotFoundError("No module named 'cuda'", name="cuda"))
    with pytest.raises(NoCupy, match="cannot be imported: there is no module cuda.*cuda13. or gn"):
        cupy()
    raising(monkeypatch, ImportError("\n=====\nCuPy failed to load\n\nOriginal: x\n===="))
    with pytest.raises(NoCupy, match="cannot be imported: CuPy failed to load; .*cuda12"):
        cupy(12040)
    raising(monkeypatch, ModuleNotFoundError("No module named 'cupy'", name="cupy"))
    with pytest.raises(NoCupy, match="cupy is not installed"):
        cupy()


def test_a_cupy_newer_than_the_driver(machine: Machine) -> None:
    machine(FakeDriver(12040, [H100]), FakeCupy(13020, nvrtc=False))
    with pytest.raises(WrongToolkit, match=r"uninstall cupy-cuda13x.*gnnc\[cuda12\]"):
        check_device()
    machine(FakeDriver(11080, [H100]), FakeCupy(12090))
    with pytest.raises(WrongToolkit, match=r"knows CUDA 11\.8, gnnc needs 12.*newer driver"):
        check_device()


@pytest.mark.parametrize("built_for", [13020, 12090])
def test_drivers_run_a_newer_minor_version_and_older_ones(machine: Machine, built_for: int) -> None:
    machine(FakeDriver(13000, [H100]), FakeCupy(built_for))
    assert why_not() is None


def test_cupy_without_the_toolkit(machine: Machine) -> None:
    machine(FakeDriver(13000, [H100]), FakeCupy(13020, nvrtc=False))
    with pytest.raises(NoToolkit, match=r"NVRTC of CUDA 13.*gnnc\[cuda13\].*libnvrtc.so.13\"\)$"):
        check_device()


def test_every_error_is_of_one_kind() -> None:
    kinds = (NoCupy, NoDevice, NoToolkit, WrongToolkit, DeviceTooOld, MixedDevices, LaunchFailed)
    assert all(issubclass(k, CudaError) for k in kinds)
    assert issubclass(OutOfDeviceMemory, CudaError) and issubclass(OutOfDeviceMemory, MemoryError)


def test_results_of_launches(machine: Machine) -> None:
    machine(FakeDriver(13000, [H100]), FakeCupy())
    driver().check(0, "forward")
    with pytest.raises(OutOfDeviceMemory, match="forward: the device is out of memory"):
        driver().check(2, "forward")
    with pytest.raises(LaunchFailed, match="backward: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal"):
        driver().check(700, "backward")


class TorchOutOfMemory(RuntimeError):
    """As torch.OutOfMemoryError is."""


TorchOutOfMemory.__name__ = "OutOfMemoryError"


@pytest.mark.parametrize("kind", [TorchOutOfMemory, OutOfMemoryError])
def test_errors_of_allocators(kind: type[Exception]) -> None:
    with pytest.raises(OutOfDeviceMemory, match=r"outputs: .* for 3 MiB \(tried\)") as raised:
        with memory_errors("outputs", 3 * 2**20):
            raise kind("tried\nand more")
    assert isinstance(raised.value.__cause__, kind)


def test_other_errors_stay_what_they_are() -> None:
    for error in (RuntimeError("other"), MemoryError(), OutOfDeviceMemory("mine", "said")):
        with pytest.raises(type(error)) as raised, memory_errors("outputs"):
            raise error
        assert raised.value is error


def test_mixed_devices_are_named() -> None:
    assert check_one_device({"x": "cuda:0", "edge_index": "cuda:0"}) == "cuda:0"
    assert check_one_device({}) is None
    with pytest.raises(MixedDevices, match="edge_index is on cpu, but x, w on cuda:0: .*to.'cuda"):
        check_one_device({"edge_index": "cpu", "x": "cuda:0", "w": "cuda:0"})
    with pytest.raises(MixedDevices, match="e is on cpu, but a, b, c, .. on cuda:1"):
        check_one_device({**dict.fromkeys("abcd", "cuda:1"), "e": "cpu"})


def test_the_stream_is_that_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = types.ModuleType("torch")
    streams = {0: 0, 1: 4711}
    torch.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        current_stream=lambda number: types.SimpleNamespace(cuda_stream=streams[number])
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert [current_stream(k) for k in streams] == [0, 4711]


def test_nothing_imports_cupy_or_torch() -> None:
    names = ("device", "driver", "errors", "kernels", "nvrtc", "options", "ptxas")
    code = (
        "import sys, importlib; sys.modules['cupy'] = sys.modules['torch'] = None; "
        f"[importlib.import_module('gnnc.runtime.cuda.' + n) for n in {names}]"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
