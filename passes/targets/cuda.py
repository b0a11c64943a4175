"""CUDA C++ for NVIDIA GPUs from compute capability 8.0 on. Its figures are those that data sheets
and published measurements give for an H100; none was measured here.
"""

from dataclasses import replace

from .openmp import OPENMP
from .record import Caches, Speeds

CUDA = replace(
    OPENMP,
    name="cuda",
    about="CUDA C++: blocks of threads, sub-warps, shared memory",
    printer="gnnc.codegen.cuda.printer",
    runtime="cuda",
    vector_bytes=16,  # what one thread loads at once
    remote_reads=True,
    steps=(
        "intra.traverse",
        "intra.move_start",
        "intra.move_wait",
        "intra.all_reduce",
        "intra.publish",
        "intra.retire",
        "intra.publish_all",
        "intra.retire_all",
    ),
    tail=(
        "stack-in-place",
        "fuse-traversals{target=cuda}",
        "pack-members",
        "split-long-rows{target=cuda}",
        "update-in-place",
        "build-pipeline",
        "schedule-grid{target=cuda}",
        "gang-small",
        "cut-stages",
        "plan-memory",
    ),
    speeds=Speeds(
        gemm_flops=30e12,
        gather_bytes=2e12,
        stream_bytes=2.5e12,
        near_bytes=5e12,
        entry_seconds=5e-12,
    ),
    caches=Caches(
        line=32,  # a sector
        block=24 * 1024,  # of shared memory, beside what products and teams take
        stack=24 * 1024,
        partials=64 * 1024 * 1024,
        near_partials=16 * 1024 * 1024,  # of the second level
        partials_a_unit=2,  # asked by `schedule` alone
    ),
    nests=replace(
        OPENMP.nests,
        narrow_product=0,  # products go by tiles of rows there
        long_row=4096,  # a single row is computed by one block
        piece=1024,
        panels={16: 1},
        masked=frozenset(),  # a lane reads numbers, not vectors
        enough_chunks=264,  # two for each multiprocessor of the largest
    ),
)

EMULATED = replace(
    CUDA,
    name="cuda-emulated",
    about="CUDA C++ for the emulator on the host",
    runtime="emulator",
)
"""The same text, run thread by thread with checks (runtime/emulator)."""

BUILT = replace(
    CUDA,
    name="cuda-built",
    about="CUDA C++ for programs that run elsewhere (gnnc build)",
    runtime="elsewhere",
)
"""The same text, of which nothing runs here (runtime/elsewhere.py)."""
