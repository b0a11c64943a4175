"""What a program needs of the emulated device: kernels, memory, launches and faults."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ..cpu import toolchain


class EmulatedFault(RuntimeError):
    """A kernel did what CUDA leaves undefined. The message names kernel, block, threads and lines
    of the device's text.
    """


class Emulator:
    """The emulated device, seen from one program that :func:`build` made.

    All programs of a process share the device: the buffers allowed, a fault and the order.

    Raises:
        OSError: `path` cannot be loaded.
    """

    def __init__(self, path: Path) -> None:
        self._library = toolchain.load(path)
        self._library.emulated_allow.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
        self._library.emulated_error.restype = ctypes.c_char_p
        self._library.emulated_seed.restype = ctypes.c_uint

    def allow(self, address: int, nbytes: int, writable: bool) -> None:
        """Let kernels read a buffer of `nbytes` bytes, and write it where `writable`. Buffers that
        overlap become one.
        """
        self._library.emulated_allow(address, nbytes, writable)

    def forget(self) -> None:
        """Let kernels use none of the buffers allowed so far."""
        self._library.emulated_forget_all()

    def handle(self, kernel: str) -> int:
        """What a launch takes in the place of a ``CUfunction``.

        Raises:
            KeyError: the program exports no such kernel.
        """
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(self._library, f"emulated_{kernel}"))
        except ValueError as error:
            raise KeyError(f"the program has no GNNC_EXPORT({kernel})") from error

    @property
    def launch(self) -> int:
        """The address of ``emulated_launch``, a function as ``cuLaunchKernel`` is. It returns 0, or
        1 from a fault on.
        """
        address = ctypes.cast(self._library.emulated_launch, ctypes.c_void_p).value
        assert address is not None
        return address

    @property
    def order(self) -> int:
        """In which order blocks and threads run: 0 as they are numbered, 1 backwards, other numbers
        shuffled, each in its own way. It holds for all launches until it is changed.
        """
        return self._library.emulated_seed()

    @order.setter
    def order(self, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"an order is a number from 0, got {seed}")
        self._library.emulated_order(ctypes.c_uint(seed))

    def check(self) -> None:
        """Nothing where launches went well so far.

        Raises:
            EmulatedFault: a launch failed; the device is ready again afterwards.
        """
        text: bytes | None = self._library.emulated_error()
        if text is not None:
            self._library.emulated_reset()
            raise EmulatedFault(text.decode())
