"""Tests of the frontend keep their compiled code out of the user's cache, run on one thread, and
verify after every pass."""

from collections.abc import Iterator

import pytest

from gnnc.passes.driver.runner import VERIFY_VARIABLE
from gnnc.tests.session import one_thread, openmp, session_cache

__all__ = ["one_thread", "openmp", "session_cache", "verification"]


@pytest.fixture(autouse=True, scope="session")
def verification() -> Iterator[None]:
    """Every pass is verified, as gnn-opt does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VERIFY_VARIABLE, "1")
        yield
