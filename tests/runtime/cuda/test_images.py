"""Machine code that programs carry, by whatever compiler is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gnnc.runtime.cuda import images as made
from gnnc.runtime.cuda import nvrtc
from gnnc.runtime.cuda.errors import NoImages, NvccError, NvrtcError
from gnnc.runtime.cuda.images import ARCHITECTURES, images

COPY = 'extern "C" __global__ void copy(float *y, const float *x) { y[threadIdx.x] = x[0]; }\n'
FATBIN = bytes.fromhex("50ed55ba")


def without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made.shutil, "which", lambda name: None)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
def test_by_nvcc() -> None:
    (image,) = images(COPY)
    assert image.startswith(FATBIN)
    assert b"copy" in image
    with pytest.raises(NvccError, match=r'(?s)-gencode=.*identifier "z" is undefined'):
        images(COPY.replace("x[0]", "z"))


@pytest.mark.skipif(nvrtc.why_not() is not None, reason="NVRTC is not installed")
def test_by_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    without_nvcc(monkeypatch)
    found = images(COPY)
    assert len(found) == len(set(ARCHITECTURES) & set(nvrtc.supported_architectures())) >= 2
    assert all(image.startswith(b"\x7fELF") for image in found)
    with pytest.raises(NvrtcError, match='identifier "z" is undefined'):
        images(COPY.replace("x[0]", "z"))


def test_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Denormal numbers are kept where they are asked for."""
    fake = tmp_path / "nvcc"
    fake.write_text('#!/bin/sh\necho "$@" >&2\nexit 1\n')
    fake.chmod(0o755)
    monkeypatch.setattr(made.shutil, "which", lambda name: str(fake))
    with pytest.raises(NvccError) as flushed:
        images(COPY)
    with pytest.raises(NvccError) as kept:
        images(COPY, denormals=True)
    assert "--ftz=true" in flushed.value.log and "--ftz=false" in kept.value.log
    assert "code=sm_80" in kept.value.log and "code=[sm_90,compute_90]" in kept.value.log


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_nvcc(monkeypatch)
    monkeypatch.setattr(nvrtc, "why_not", lambda: "NVRTC is not installed: `pip install it`")
    with pytest.raises(NoImages, match=r"nvcc is not on the PATH, and NVRTC is not installed"):
        images(COPY)
