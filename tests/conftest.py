"""Of all tests."""

import gc

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start ranks as processes are chosen, or left out, by `-m mpi`."""
    for item in items:
        if isinstance(item, pytest.Function) and "one_at_a_time" in item.fixturenames:
            item.add_marker("mpi")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported stays: a seventh of the tests' time went into looking through all modules
    of torch for cycles, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
