"""Of all tests."""

import gc
import zlib
from collections import defaultdict
from collections.abc import Sequence

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start ranks as processes are chosen, or left out, by `-m mpi`. Of a test marked
    `one_in(n)`, one in n of its cases stays quick.
    """
    families = defaultdict[tuple[object, str], list[pytest.Function]](list)
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if "one_at_a_time" in item.fixturenames:
            item.add_marker("mpi")
        if item.get_closest_marker("one_in") and not item.get_closest_marker("long"):
            families[item.parent, item.originalname].append(item)
    for cases in families.values():
        for item in left_for_later(cases):
            item.add_marker("long")


def left_for_later(cases: Sequence[pytest.Function]) -> list[pytest.Function]:
    """The cases of a test that are not quick: all but one in n. The quick ones are picked by their
    names, so that values of several parameters are mixed."""
    mark = cases[0].get_closest_marker("one_in")
    assert mark is not None
    quick = -(-len(cases) // mark.args[0])
    return sorted(cases, key=lambda item: zlib.crc32(item.name.encode()))[quick:]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported stays: a seventh of the tests' time went into looking through all modules
    of torch for cycles, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
