"""The device functions at the head of every text of kernels."""

from __future__ import annotations

from ..common.headers import header_text

HEADERS = ("scalars.cuh", "products.cuh", "outer_sums.cuh", "chunks.cuh", "peers.cuh")
"""Numbers; products of tiles with weights; sums of outer products of rows; how blocks share rows;
rows of other ranks. In this order."""


def device_text() -> str:
    """What kernels call: CUDA C++17 for NVRTC, nvcc, and a C++ compiler whose text before it
    defines the words of CUDA (`__device__`, `threadIdx`, `__syncthreads`, ...)."""
    return "\n".join(header_text("gnnc.codegen.cuda", name) for name in HEADERS)
