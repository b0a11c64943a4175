"""What device text is compiled with, by NVRTC alone and by cupy's."""

from __future__ import annotations

OLDEST = (8, 0)
"""The least compute capability that programs are made for."""


def compile_options(denormals: bool = False) -> tuple[str, ...]:
    """NVRTC's options for device text, without the architecture.

    Denormal numbers are taken for 0 as on the CPU, or kept with `denormals`. Products and sums may
    be contracted; division and square roots are rounded as IEEE says, without `--use_fast_math`.
    """
    flush = "false" if denormals else "true"
    return (
        "--std=c++17",
        f"--ftz={flush}",
        "--fmad=true",
        "--prec-div=true",
        "--prec-sqrt=true",
    )
