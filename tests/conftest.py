"""Of all tests."""

import gc

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported stays: a seventh of the tests' time went into looking through all modules
    of torch for cycles, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
