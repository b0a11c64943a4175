"""C with OpenMP for processors with vectors of 16, 32 or 64 bytes. Its figures were measured on a
two-core machine with AVX-512; `gnnc bench` shows them for others.
"""

from .record import Caches, Nests, Speeds, Target

OPENMP = Target(
    name="openmp",
    about="C with OpenMP: threads, vectors, blocks of rows",
    printer="gnnc.codegen.openmp.printer",
    runtime="cpu",
    vector_bytes=64,
    remote_reads=False,
    steps=("intra.traverse", "intra.move_start", "intra.move_wait", "intra.all_reduce"),
    tail=(
        "stack-in-place",
        "fuse-traversals",
        "pack-members",
        "split-long-rows",
        "update-in-place",
        "schedule{target=openmp vector-bytes={vector_bytes}}",
        "cut-stages",
        "interleave-rows",
        "plan-memory",
    ),
    speeds=Speeds(
        gemm_flops=250e9,
        gather_bytes=20e9,
        stream_bytes=30e9,
        # with these a product of features costs the same dense and by entries where a share of
        # 0.25 (16 wide), 0.37 (32), 0.31 (64) and 0.28 (128) of them is not 0; measured 0.27, 0.32,
        # 0.31 and 0.28
        near_bytes=124e9,
        entry_seconds=1.04e-9,
    ),
    caches=Caches(
        line=64,
        # they need not all fit the first level: a tile of outer products is loaded and stored once
        # a block, which costs more in short blocks than rows from the second level do
        block=96 * 1024,
        stack=256 * 1024,
        partials=16 * 1024 * 1024,
        # of the second level: every chunk clears its own and all are read in the end
        near_partials=1024 * 1024,
        # to clear, write back and add up a byte takes 0.2 ns, a unit of work 4.6 ns
        partials_a_unit=2,
    ),
    nests=Nests(
        group_matrix=256 * 1024,  # the second-level cache and a thread's stack
        register_sums=256,
        replayed_loads=3,
        replayed_numbers=16,  # a cache line
        merged_ops=96,
        merged_products=8,
        narrow=4,
        # a vector of the product takes as many multiplications, about 8 cycles; to write, fetch and
        # read one takes 3 lines of memory
        narrow_product=16,
        long_row=16384,  # below that threads wait for each other longer than they compute
        piece=4096,  # a few pieces for each thread, which come from the near caches
        panels={16: 3, 32: 3, 64: 4},  # 16 vector registers, and 32 of the longest
        masked=frozenset({32, 64}),  # AVX and AVX-512; SSE and NEON have no such accesses
        enough_chunks=64,  # for some tens of threads
    ),
)
