"""Tests of the frontend keep their compiled code out of the user's cache, run on one thread, and
verify after every pass."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gnnc.passes.runner import VERIFY_VARIABLE


@pytest.fixture(autouse=True, scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNNC_CACHE", str(place))
        yield place


@pytest.fixture(autouse=True, scope="session")
def verification() -> Iterator[None]:
    """Every pass is verified, as gnn-opt does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VERIFY_VARIABLE, "1")
        yield


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Graphs are small here, and waiting threads would take the time of other tests' processes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
