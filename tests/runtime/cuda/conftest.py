"""The driver is found once in a process; tests with stand-ins of it find it anew."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from gnnc.runtime.cuda import driver

from .fakes import FakeDriver

Machine = Callable[[FakeDriver | None, ModuleType | None], None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Sets the driver and the cupy that there are; None is none."""
    load = ctypes.CDLL

    def put(found: FakeDriver | None, cupy: ModuleType | None) -> None:
        def open_library(name: str) -> object:
            if name != driver.LIBRARY:
                return load(name)
            if found is None:
                raise OSError(f"{name}: cannot open shared object file")
            return found

        monkeypatch.setattr(ctypes, "CDLL", open_library)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        driver.driver.cache_clear()

    yield put
    driver.driver.cache_clear()
