"""Machine code of device text that programs without Python carry: made by nvcc, or by NVRTC where
nvcc is not installed. Neither needs a GPU.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from . import nvrtc
from .errors import NoImages, NvccError
from .options import compile_options

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
"""What NVRTC compiles for: the first of each generation, whose code later ones of it run."""
_NVCC = (
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",  # the driver compiles for later ones
)


def images(text: str, denormals: bool = False) -> list[bytes]:
    """Device text as what cuModuleLoadData takes; a device runs the first that it does not refuse.

    Raises:
        NoImages: there is neither nvcc nor NVRTC.
        NvccError, NvrtcError: the text does not compile.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        return [by_nvcc(nvcc, text, denormals)]
    if (reason := nvrtc.why_not()) is not None:
        raise NoImages(
            f"the kernels have to be compiled, by nvcc or by NVRTC: nvcc is not on the PATH, and "
            f"{reason}"
        )
    known = nvrtc.supported_architectures()
    chosen = [arch for arch in ARCHITECTURES if arch in known]
    return [nvrtc.compile_device(text, arch, denormals=denormals).cubin for arch in chosen]


def by_nvcc(nvcc: str, text: str, denormals: bool = False) -> bytes:
    """One image for all devices from compute capability 8.0 on.

    Raises:
        NvccError: it rejects the text; or it cannot run.
    """
    with tempfile.TemporaryDirectory(prefix="gnnc-") as scratch:
        source, image = Path(scratch) / "kernels.cu", Path(scratch) / "kernels.fatbin"
        source.write_text(text)
        options = (*compile_options(denormals), *_NVCC, "--threads=2", "-fatbin")
        command = [nvcc, *options, "-o", str(image), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise NvccError(command, done.stderr or done.stdout)
        return image.read_bytes()
