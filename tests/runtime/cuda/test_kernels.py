"""Kernels as host code takes them, with stand-ins for cupy and the driver, and real C."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from gnnc.runtime.cpu import toolchain
from gnnc.runtime.cuda.driver import Device, driver
from gnnc.runtime.cuda.errors import LaunchFailed, NvrtcError, OutOfDeviceMemory
from gnnc.runtime.cuda.kernels import DeviceKernels, host_function

from .conftest import Machine
from .fakes import FakeCupy, FakeDriver

DEVICE = Device(1, "H100", (9, 0))
HANDLES = {"first": 0x1000, "second": 0x7FFF00002000}
HOST = """
#include <stdint.h>
typedef int (*launch_function)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
    unsigned by, unsigned bz, unsigned shared, void *stream, void **args, void **extra);
int gnnc_forward(launch_function launch, void *const *kernels, void *stream, char *ws,
                 const int64_t *n, void *const *b) {
    int64_t *seen = (int64_t *)b[0];
    seen[0] = (int64_t)launch;
    seen[1] = (int64_t)kernels[0];
    seen[2] = (int64_t)kernels[1];
    seen[3] = (int64_t)stream;
    seen[4] = (int64_t)ws;
    return (int)n[0];
}
"""


def machine_with(machine: Machine, **kwargs: object) -> FakeCupy:
    cupy = FakeCupy(handles=HANDLES, **kwargs)  # type: ignore[arg-type]
    machine(FakeDriver(13000, [("A100", (8, 0)), ("H100", (9, 0))]), cupy)
    return cupy


def test_handles_are_in_order_of_names(machine: Machine) -> None:
    cupy = machine_with(machine)
    kernels = DeviceKernels("text", ["second", "first"], DEVICE)
    assert list(kernels.handles) == [HANDLES["second"], HANDLES["first"]]
    assert "--ftz=true" in cupy.options and cupy.current == []
    DeviceKernels("text", [], DEVICE, denormals=True)
    assert "--ftz=false" in cupy.options


def test_a_kernel_that_is_not_there(machine: Machine) -> None:
    machine_with(machine)
    with pytest.raises(KeyError, match="no kernel third"):
        DeviceKernels("text", ["first", "third"], DEVICE)


def test_text_that_does_not_compile(machine: Machine) -> None:
    text = "/* intra: %1 = intra.neg %0 */\nx = -y;\n"
    machine_with(machine, log='cache/k.cu(2): error: identifier "y" is undefined\n')
    with pytest.raises(NvrtcError, match="for sm_90") as raised:
        DeviceKernels(text, ["first"], DEVICE)
    (line,) = raised.value.lines
    assert "x = -y;" in line and line.endswith("of the op %1 = intra.neg %0")


def test_code_that_the_device_cannot_hold(machine: Machine) -> None:
    machine_with(machine).no_memory = True
    with pytest.raises(OutOfDeviceMemory, match="the kernels of a program"):
        DeviceKernels("text", ["first"], DEVICE)


@pytest.fixture
def forward(cache_root: Path) -> object:
    return host_function(toolchain.load(toolchain.compile_source(HOST)), "gnnc_forward")


def test_host_code_is_given_what_it_launches_with(machine: Machine, forward: object) -> None:
    cupy = machine_with(machine)
    kernels = DeviceKernels("text", ["first", "second"], DEVICE)
    seen = (ctypes.c_int64 * 5)()
    buffers = (ctypes.c_void_p * 1)(ctypes.addressof(seen))
    sizes = (ctypes.c_int64 * 1)(0)
    stream, workspace = 0x7F0012345678, 0x7F0087654321

    def call() -> None:
        at = ctypes.addressof
        kernels.call(forward, stream, workspace, at(sizes), at(buffers), "forward")

    call()
    launch = driver().launch_address()
    assert list(seen) == [launch, *HANDLES.values(), stream, workspace]
    assert cupy.current == []
    sizes[0] = 700
    with pytest.raises(LaunchFailed, match="forward: CUDA_ERROR_ILLEGAL_ADDRESS"):
        call()
    sizes[0] = 2
    with pytest.raises(OutOfDeviceMemory):
        call()
