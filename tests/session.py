"""Fixtures of a whole session, for the conftest files of folders that compile programs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gnnc.frontend.targets import TARGET_VARIABLE


@pytest.fixture(autouse=True, scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compiled code stays out of the user's cache."""
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNNC_CACHE", str(place))
        yield place


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Graphs are small here, and waiting threads would take the time of other tests' processes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what openmp alone prints or does: they test it whatever ``GNNC_TARGET`` says."""
    monkeypatch.setenv(TARGET_VARIABLE, "openmp")
