"""CUDA kernels on the host: CUDA C++ is compiled as C++ and run thread by thread, with checks.

`build` makes a shared object of kernels and host code, and `Emulator` gives a program what a driver
would: kernels to launch and memory to use. Launches run on the calling thread; blocks run one after
the other, threads as fibers in an order that can be chosen. What a GPU leaves undefined is a fault
(:class:`EmulatedFault`) that names kernel, block, threads and lines:

- a barrier or an operation of a warp that some of its threads miss, or meet at different lines;
- a shuffle's mask without the calling lane, or without the lane that is read;
- an access outside of the allowed buffers and of the shared memory, a write where only reads are
  allowed, an address that is not aligned;
- a read of shared memory that the block has not written;
- a race: two accesses to one byte, one of them a write, that no barrier orders. ``__syncwarp`` is a
  barrier of the lanes it names; shuffles, votes and atomics order no accesses.

There is one emulated device in a process, for one thread of the host at a time.
"""

from .device import EmulatedFault, Emulator
from .toolchain import build

__all__ = ["EmulatedFault", "Emulator", "build"]
