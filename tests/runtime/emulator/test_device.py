"""The emulated device as a whole: launches, faults that stay, memory, builds."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gnnc.runtime.cpu.toolchain import CompileError, NoCompiler, sanitizer_environment
from gnnc.runtime.emulator import EmulatedFault, Emulator, build, toolchain

from .launching import ORDERS, allowed, frozen, launch, line, run

COPY = """__global__ void k(const float *x, float *y) {
    GNNC_SHARED(memory);
    float *m = (float *)memory;
    m[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = m[blockDim.x - 1 - threadIdx.x]; // A
}
GNNC_EXPORT(k)
__global__ void empty() {}
GNNC_EXPORT(empty)
"""
HOST = """
#include <stdio.h>
extern "C" __attribute__((visibility("default")))
int run_all(int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **),
            float *x, float *y, int n)
{
    for (int i = 0; i < n; ++i) x[i] = 2.0f * i;
    void *arguments[] = {&x, &y};
    return launch(&emulated_k, 1, 1, 1, n, 1, 1, n * sizeof(float), NULL, arguments, NULL);
}
"""


def arrays(n: int = 32) -> tuple[np.ndarray, np.ndarray]:
    return frozen(np.arange(n, dtype=np.float32)), np.zeros(n, np.float32)


@pytest.fixture
def emulator() -> Emulator:
    """The device with the two kernels of COPY, whose threads run in order."""
    emulator = Emulator(build(COPY))
    emulator.order = 0
    return emulator


def test_host_code_launches_kernels():
    """The host's own accesses are not checked."""
    path = build(COPY, HOST)
    emulator = Emulator(path)
    x, y = np.zeros(16, np.float32), np.zeros(16, np.float32)
    pointers = [ctypes.c_void_p(a) for a in (emulator.launch, x.ctypes.data, y.ctypes.data)]
    with allowed(emulator, [x, y]):
        assert ctypes.CDLL(str(path)).run_all(*pointers, 16) == 0
    emulator.check()
    np.testing.assert_array_equal(y, 2 * np.arange(15, -1, -1))


def test_fault_stays_until_it_is_checked(emulator: Emulator):
    x, y = arrays()
    with allowed(emulator, [x, y]):
        assert launch(emulator, "k", x, y, grid=2, shared=128) == 1
        assert launch(emulator, "k", x, y, shared=128) == 1
        assert launch(emulator, "empty") == 1
        with pytest.raises(EmulatedFault, match=f"block \\(1, 0, 0\\).*line {line(COPY, 'A')}"):
            emulator.check()
        emulator.check()
        y[:] = 0
        assert launch(emulator, "k", x, y, shared=128) == 0
    emulator.check()
    np.testing.assert_array_equal(y, x[::-1])


@pytest.mark.parametrize("order", ORDERS)
def test_device_is_well_after_threads_were_left_waiting(order):
    text = """
    __global__ void k(int *y) {
        if (threadIdx.x != 7) __shfl_sync(0xffffffffu, y[threadIdx.x], 0);
        __syncthreads();
    }
    GNNC_EXPORT(k)
    """
    with pytest.raises(EmulatedFault, match="waits at the barrier"):
        run(text, np.zeros(64, np.int32), block=64, order=order)
    x, y = arrays()
    run(COPY, x, y, shared=128, order=order)
    np.testing.assert_array_equal(y, x[::-1])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "sizes, text",
    [
        ({"grid": 0}, "a grid of 0 x 1 x 1 blocks"),
        ({"grid": (1, 70000)}, "a grid of 1 x 70000 x 1 blocks"),
        ({"block": (33, 32)}, "a block of 33 x 32 x 1 threads"),
        ({"block": 0}, "a block of 0 x 1 x 1 threads"),
        ({"shared": 1 << 20}, "1048576 bytes of shared memory"),
    ],
)
def test_sizes_that_cannot_be_launched(sizes, text):
    with pytest.raises(EmulatedFault, match=f"^kernel k: {text}"):
        run(COPY, *arrays(), **sizes)


def test_forgotten_buffers_are_no_longer_allowed(emulator: Emulator):
    x, y = arrays()
    with allowed(emulator, [x, y]):
        pass
    launch(emulator, "k", x, y, shared=128)
    with pytest.raises(EmulatedFault, match="outside of all memory.*: no buffer is near"):
        emulator.check()


def test_buffers_that_overlap_are_one(emulator: Emulator):
    whole = np.zeros(96, np.float32)
    x, y = whole[:40].view(), whole[32:]
    with allowed(emulator, [frozen(x), y]):
        launch(emulator, "k", x, y, shared=128)
        emulator.check()
        launch(emulator, "k", x, y, grid=2, shared=128)
        emulator.check()
        launch(emulator, "k", x, y, grid=3, shared=128)
        with pytest.raises(EmulatedFault, match=r"behind .* of buffer 0 \(384 bytes\)"):
            emulator.check()


def test_launches_are_ordered(emulator: Emulator):
    """What one launch writes another may read, by other threads."""
    x, y = arrays()
    z = np.zeros(32, np.float32)
    with allowed(emulator, [x, y, z]):
        launch(emulator, "k", x, y, shared=128)
        launch(emulator, "k", y, z, shared=128)
        launch(emulator, "k", x, y, shared=128)
    emulator.check()
    np.testing.assert_array_equal(z, x)


def test_more_barriers_than_the_emulator_counts():
    text = """
    __global__ void k(int *y) {
        for (int i = 0; i < 5000000; ++i) __syncthreads();
    }
    GNNC_EXPORT(k)
    """
    with pytest.raises(EmulatedFault, match="has waited too often"):
        run(text, np.zeros(1, np.int32), block=1)


def test_kernel_that_is_not_there(emulator: Emulator):
    with pytest.raises(KeyError, match=r"GNNC_EXPORT\(other\)"):
        emulator.handle("other")


def test_order_holds_for_all_programs(emulator: Emulator):
    other = Emulator(build(COPY, "// another"))
    emulator.order = 3
    assert other.order == 3
    with pytest.raises(ValueError, match="-1"):
        emulator.order = -1
    assert emulator.order == 3


def test_faults_without_addr2line(emulator: Emulator, monkeypatch: pytest.MonkeyPatch):
    x, y = arrays()
    monkeypatch.setenv("PATH", "")
    with allowed(emulator, [x, y]):
        launch(emulator, "k", x, y, grid=2, shared=128)
    with pytest.raises(EmulatedFault, match=r"kernel k.*thread \(31, 0, 0\) writes .* at pc 0x"):
        emulator.check()


def test_other_context_switch(cache_root: Path, monkeypatch: pytest.MonkeyPatch):
    """That of processors but x86-64."""
    monkeypatch.setattr(toolchain, "_RUNTIME", (*toolchain._RUNTIME, "-DEMULATOR_UCONTEXT"))
    for order in ORDERS:
        x, y = arrays(100)
        run(COPY, x, y, block=100, shared=400, order=order)
        np.testing.assert_array_equal(y, x[::-1])
        with pytest.raises(EmulatedFault, match="behind the last byte"):
            run(COPY, x, y, block=100, grid=2, shared=400)


# builds


def test_builds_are_cached(cache_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "log"
    wrapper = tmp_path / "g++"
    wrapper.write_text(f'#!/bin/sh\necho run >> {log}\nexec c++ "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    path = build(COPY)
    assert path.parent == cache_root / "objects"
    assert COPY in path.with_suffix(".cpp").read_text()
    runs = len(log.read_text().split())
    assert build(COPY) == path
    assert len(log.read_text().split()) == runs
    assert build(COPY, "// a host") != path
    assert len(log.read_text().split()) == runs + 2
    path.write_bytes(path.read_bytes()[:100])
    assert build(COPY) == path
    assert len(log.read_text().split()) == runs + 4


def test_no_compiler(cache_root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(NoCompiler, match=r"no-such-compiler.*apt install g\+\+.*CXX"):
        build(COPY)


@pytest.mark.parametrize(
    "c, cxx",
    [
        ("cc", "c++"),
        ("gcc", "g++"),
        ("gcc-12", "g++-12"),
        ("clang", "clang++"),
        ("clang-15 -m64", "clang++-15 -m64"),
        ("/opt/cc/bin/x86_64-linux-gnu-gcc", "/opt/cc/bin/x86_64-linux-gnu-g++"),
        ("tcc-like", "tc++-like"),
        ("icx", "c++"),
    ],
)
def test_compiler_beside_that_of_c(c, cxx):
    assert toolchain._beside(c) == cxx


def test_errors_name_lines_of_the_texts():
    with pytest.raises(CompileError, match="device:2:.*undeclared_thing"):
        build("\nint f() { return undeclared_thing; }")
    with pytest.raises(CompileError, match="host:1:.*undeclared_thing"):
        build("\n\n", "int f() { return undeclared_thing; }")
    with pytest.raises(CompileError, match="nowhere"):
        build("void nowhere(); __global__ void k() { nowhere(); }\nGNNC_EXPORT(k)\n")


# other sanitizers

SANITIZED = """
import sys
import numpy as np
from gnnc.runtime.emulator import Emulator, build
from gnnc.tests.runtime.emulator.launching import launch
emulator = Emulator(build(sys.argv[1], sanitize=True))
x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
for order in range(4):
    emulator.order = order
    assert launch(emulator, "k", x, y, grid=int(sys.argv[2]), shared=int(sys.argv[3])) == 0
np.testing.assert_array_equal(y, x[::-1])
emulator.check()
"""


def sanitized(device: str, grid: int, shared: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SANITIZED, device, str(grid), str(shared)]
    env = {**os.environ, **sanitizer_environment()}
    return subprocess.run(command, env=env, capture_output=True, text=True)


@pytest.mark.sanitize
def test_sanitizers_see_wrong_accesses():
    good = sanitized(COPY, 1, 128)
    assert good.returncode == 0, good.stderr
    for grid, shared in ((2, 128), (1, 120)):
        wrong = sanitized(COPY, grid, shared)
        assert wrong.returncode != 0
        assert "AddressSanitizer: heap-buffer-overflow" in wrong.stderr


@pytest.mark.sanitize
def test_sanitizers_see_undefined_behaviour():
    text = COPY.replace("= x[threadIdx.x];", "= x[threadIdx.x] + (1 << (threadIdx.x + 1));")
    wrong = sanitized(text, 1, 128)
    assert wrong.returncode != 0
    assert "shift exponent 32 is too large" in wrong.stderr
