"""Tests of the frontend keep their compiled code out of the user's cache and run on one thread.
Where the long ones run too, every pass is verified."""

from collections.abc import Iterator

import pytest

from gnnc.passes.driver.runner import VERIFY_VARIABLE
from gnnc.tests.session import one_thread, openmp, session_cache

__all__ = ["one_thread", "openmp", "session_cache", "verification"]


@pytest.fixture(autouse=True, scope="session")
def verification(pytestconfig: pytest.Config) -> Iterator[None]:
    """Every pass is verified, as gnn-opt does, where the long tests run too: it is a third of a
    compilation. The others verify what goes in and what comes out, as users do, and the tests of
    passes every pass."""
    with pytest.MonkeyPatch.context() as patch:
        if pytestconfig.getoption("markexpr") != "not long":
            patch.setenv(VERIFY_VARIABLE, "1")
        yield
