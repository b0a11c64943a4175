"""Tests of the frontend keep their compiled code out of the user's cache and run on one thread.
Where the long ones run too, every pass is verified, and C is compiled as for users."""

from collections.abc import Iterator

import pytest

from gnnc.passes.driver.runner import VERIFY_VARIABLE
from gnnc.runtime.cpu.toolchain import FLAGS_VARIABLE
from gnnc.tests.session import one_thread, openmp, session_cache

__all__ = ["compiled_quickly", "one_thread", "openmp", "session_cache", "verification"]


@pytest.fixture(autouse=True, scope="session")
def verification(pytestconfig: pytest.Config) -> Iterator[None]:
    """Every pass is verified, as gnn-opt does, where the long tests run too: it is a third of a
    compilation. The others verify what goes in and what comes out, as users do, and the tests of
    passes every pass."""
    with pytest.MonkeyPatch.context() as patch:
        if with_long_tests(pytestconfig):
            patch.setenv(VERIFY_VARIABLE, "1")
        yield


@pytest.fixture(autouse=True, scope="session")
def compiled_quickly(pytestconfig: pytest.Config) -> Iterator[None]:
    """Where they do not, a C compiler may take a third of its time: what it makes of programs when
    it takes it all is seen by the tests of codegen."""
    with pytest.MonkeyPatch.context() as patch:
        if not with_long_tests(pytestconfig):
            patch.setenv(FLAGS_VARIABLE, "-Og -fno-lto")  # the cores have other tests to run
        yield


def with_long_tests(config: pytest.Config) -> bool:
    """Whether the tests that take long run too."""
    return "not long" not in config.getoption("markexpr")
