"""NVRTC on any machine: what kernels take, and errors that name the line and the op."""

from __future__ import annotations

from typing import NoReturn

import pytest

from gnnc.runtime.cuda import nvrtc
from gnnc.runtime.cuda.errors import NoNvrtc, NvrtcError
from gnnc.runtime.cuda.nvrtc import cited, compile_device, supported_architectures, versions
from gnnc.runtime.cuda.options import compile_options
from gnnc.runtime.cuda.ptxas import Resources, resources

COPY = """
extern "C" __global__ void copy(float *y, const float *x, long n) {
    __shared__ float tile[64];
    long i = blockIdx.x * 64l + threadIdx.x;
    if (i < n) tile[threadIdx.x] = x[i];
    __syncthreads();
    if (i < n) y[i] = tile[63 - threadIdx.x];
}
"""
SPILLS = """
extern "C" __global__ void __launch_bounds__(1024) spills(float *x) {
    float q[150];
#pragma unroll
    for (int i = 0; i < 150; ++i) q[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 150; ++i) x[i * 1024 + threadIdx.x] = q[149 - i] * q[(i * 7) % 150];
}
"""
CALLS = """
__device__ __noinline__ float kept(float x) {
    volatile float q[40];
    for (int i = 0; i < 40; ++i) q[i] = x + i;
    return q[(int)x];
}
extern "C" __global__ void calls(float *x) { x[0] = kept(x[1]); }
"""
BAD = """extern "C" __global__ void right(float *x) {
    /* intra: %1 = intra.read %x */
    x[0] = 1.0f;
}
extern "C" __global__ void wrong(float *x) {
    float t = missing;
    /* intra: %3 = intra.mul %1, %2 */

    x[0] = t * undefined_name;
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_resources_of_every_kernel(arch: str) -> None:
    made = compile_device(COPY + SPILLS + CALLS, arch)
    assert made.cubin.startswith(b"\x7fELF")
    assert list(made.kernels) == ["calls", "copy", "spills"]  # a function is no kernel
    copy, spills, calls = (made.kernels[n] for n in ("copy", "spills", "calls"))
    assert 4 <= copy.registers <= 32
    assert (copy.shared, copy.spill_stores, copy.stack) == (256, 0, 0)
    assert spills.registers == 64  # a block of 1024 threads leaves no more
    assert spills.spill_stores > 0 and spills.spill_loads > 0
    assert calls.stack >= 160


def test_architectures_are_told_apart() -> None:
    assert compile_device(COPY, "sm_80").cubin != compile_device(COPY, "sm_90").cubin
    with pytest.raises(ValueError, match="no sm_10: there are .*sm_80.*sm_90"):
        compile_device(COPY, "sm_10")


def test_constant_banks_where_ptxas_tells() -> None:
    assert compile_device(COPY, "sm_80").kernels["copy"].constant > 0


def test_errors_name_the_line_and_the_op() -> None:
    with pytest.raises(NvrtcError) as raised:
        compile_device(BAD)
    first, second = raised.value.lines
    assert '"missing" is undefined' in first and "float t = missing;" in first
    assert "of the op" not in first  # that above is of another kernel
    assert '"undefined_name" is undefined' in second and "device.cu(9)" in second
    assert second.endswith("of the op %3 = intra.mul %1, %2")
    assert "sm_90" in str(raised.value) and second in str(raised.value)
    assert "2 errors detected" in raised.value.log


def test_errors_at_the_end_of_the_text() -> None:
    with pytest.raises(NvrtcError, match="expected a"):
        compile_device('extern "C" __global__ void open(float *x) {\n')


def test_what_does_not_fit_the_device_is_an_error() -> None:
    large = COPY.replace("tile[64]", "tile[64000]")
    with pytest.raises(NvrtcError, match="'copy' uses too much shared data") as raised:
        compile_device(large)
    assert raised.value.lines == [] and "Compile time" not in str(raised.value)


def test_options_are_given() -> None:
    with pytest.raises(NvrtcError, match="unrecognized option --no-such-thing"):
        compile_device(COPY, options=["--no-such-thing"])
    text = '#ifndef CHOSEN\n#error "not chosen"\n#endif\n' + COPY
    compile_device(text, options=["-DCHOSEN"])
    with pytest.raises(NvrtcError, match="not chosen"):
        compile_device(text)


def test_denormals_are_a_choice() -> None:
    add = 'extern "C" __global__ void add(float *x) { x[0] += x[1]; }'
    flushed, kept = compile_device(add), compile_device(add, denormals=True)
    assert flushed.cubin != kept.cubin
    assert "--ftz=true" in compile_options() and "--ftz=false" in compile_options(denormals=True)


def test_a_log_of_another_caller_is_cited() -> None:
    log = 'cache/b.cu(9): error: identifier "undefined_name" is undefined\n'
    (line,) = cited(BAD, log)
    assert "x[0] = t * undefined_name;" in line and "%3 = intra.mul" in line
    assert cited(BAD, "b.cu(3): warning: nothing\n") == []
    assert cited(BAD, "b.cu(900): error: beyond\n") == ["b.cu(900): error: beyond"]


def test_a_log_as_ptxas_writes_it() -> None:
    log = (
        "ptxas info    : Compiling entry function 'f' for 'sm_80'\n"
        "ptxas info    : Function properties for f\n"
        "ptxas         .     16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
        "ptxas info    : Used 12 registers, used 1 barriers, 40 bytes cumulative stack size, "
        "256 bytes smem, 376 bytes cmem[0], 8 bytes cmem[2]\n"
        "ptxas info    : Function properties for _Z1gf\n"
        "ptxas         .     1 bytes stack frame, 2 bytes spill stores, 3 bytes spill loads\n"
    )
    assert resources(log) == {"f": Resources(12, 24, 32, 40, 256, 384)}


def test_versions() -> None:
    found = versions()
    assert found["nvrtc"] in found["nvidia-cuda-nvrtc"]
    assert {"sm_80", "sm_90"} <= set(supported_architectures())
    assert nvrtc.why_not() is None


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> NoReturn:
        raise nvrtc.PackageNotFoundError(package)

    nvrtc._library.cache_clear()
    monkeypatch.setattr(nvrtc, "distribution", missing)
    try:
        with pytest.raises(NoNvrtc, match="pip install nvidia-cuda-nvrtc"):
            nvrtc.version_text()
        assert "NVRTC is not installed" in str(nvrtc.why_not())
    finally:
        nvrtc._library.cache_clear()
