"""Whether programs can run on a GPU of this machine, and what runs them there: cupy, which is
imported when a device is asked for and not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .driver import Device, driver
from .errors import (
    CudaError,
    DeviceTooOld,
    NoCupy,
    NoToolkit,
    OutOfDeviceMemory,
    WrongToolkit,
)
from .options import OLDEST

ALIGNMENT = 16
"""Bytes of what a thread loads at once, to which rows have to be aligned. torch's own tensors are;
views of them may not be."""


def cupy(driver_version: int | None = None) -> Any:
    """The module cupy; `driver_version` is what decides which of its packages to name.

    Raises:
        NoCupy: it is not installed, or cannot be imported.
    """
    try:
        return importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        missing = "" if error.name == "cupy" else f"there is no module {error.name}"
        raise NoCupy(driver_version, missing) from error
    except ImportError as error:
        raise NoCupy(driver_version, _said(error)) from error


def _said(error: ImportError) -> str:
    """What cupy's message, which has a frame around it, says first."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line.strip("=")), type(error).__name__)


def check_device(number: int = 0) -> Device:
    """The device of this number, if programs can run there.

    Asked in the order in which one would mend it: the driver comes first, for cupy without the
    toolkit or a driver blames an "insufficient driver" whatever is missing.

    Raises:
        NoDevice: no driver, or no device of this number.
        DeviceTooOld: its compute capability is less than 8.0.
        NoCupy, WrongToolkit, NoToolkit: cupy is not there, not for this driver, or without NVRTC.
    """
    found = driver()
    device = found.device(number)
    if device.capability < OLDEST:
        raise DeviceTooOld(device.name, device.capability)
    check_cupy(cupy(found.version), found.version)
    return device


def check_cupy(module: Any, driver_version: int) -> None:
    """
    Raises:
        WrongToolkit: this cupy is for a newer CUDA than the driver knows. Within one major version
            drivers run what is newer.
        NoToolkit: it finds no NVRTC.
    """
    built_for: int = module.cuda.runtime.runtimeGetVersion()
    if built_for // 1000 > driver_version // 1000:
        raise WrongToolkit(built_for, driver_version)
    try:
        module.cuda.nvrtc.getVersion()
    except (RuntimeError, ImportError) as error:  # cupy 13 and 14 say it with RuntimeErrors
        raise NoToolkit(built_for, str(error)) from error


def why_not(number: int = 0) -> str | None:
    """Why programs cannot run on the device of this number, or None."""
    try:
        check_device(number)
    except CudaError as error:
        return str(error)
    return None


def number_of(device: str) -> int:
    """The number of a device as CUDA counts: of "cuda:1", 1. Raises ValueError for another."""
    kind, _, number = device.partition(":")
    if kind != "cuda":
        raise ValueError(f"the program runs on CUDA devices, not on {device}")
    return int(number or 0)


def current_device(number: int) -> AbstractContextManager[Any]:
    """Makes the context of a device the current one of this thread: autograd's have none."""
    return cupy().cuda.Device(number)


def current_stream(number: int) -> int:
    """The stream that torch's calls on a device go to now, as an address; 0 is CUDA's default
    stream."""
    torch = importlib.import_module("torch")
    return torch.cuda.current_stream(number).cuda_stream


@contextmanager
def memory_errors(what: str, needed: int | None = None) -> Generator[None]:
    """Gives torch's and cupy's errors inside the form of ours; `needed` are the bytes that were
    asked for.

    Raises:
        OutOfDeviceMemory: torch or cupy found no memory on the device.
    """
    try:
        yield
    except OutOfDeviceMemory:
        raise
    except (MemoryError, RuntimeError) as error:
        # torch.OutOfMemoryError is a RuntimeError, cupy's a MemoryError
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise OutOfDeviceMemory(what, str(error), needed) from error
