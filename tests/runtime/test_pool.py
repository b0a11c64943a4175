"""The pool of large buffers: what is freed is used again, and nothing is lost or shared."""

import gc
import threading

import numpy as np
import pytest

from gnnc.runtime.cpu.heap import HUGE_PAGE, heap
from gnnc.runtime.cpu.pool import COLOUR, LONGEST_SPARE, Borrowed, Pool, Spares, rounded

MANY = 10 * HUGE_PAGE


def floats(pool: Pool, count: int) -> np.ndarray:
    return np.asarray(pool.take(4 * count).shaped((count,), "<f4"))


def test_freed_memory_is_used_again():
    pool = Pool()
    first = pool.take(MANY)
    address = first.address
    del first
    assert pool.take(MANY - 4096).address == address
    assert pool.held == rounded(MANY)


def test_an_array_keeps_its_memory():
    pool = Pool()
    x = floats(pool, 1_000_000)
    view = x[10:20]
    view[:] = 7
    del x
    y = floats(pool, 1_000_000)
    y[:] = 1
    assert (view == 7).all()
    assert not np.shares_memory(view, y)


def test_what_is_in_use_is_never_shared():
    pool, rng = Pool(), np.random.default_rng(0)
    held: list[tuple[np.ndarray, int]] = []
    for k in range(300):
        x = floats(pool, int(rng.integers(1, 200_000)))
        x[:] = k
        held.append((x, k))
        if len(held) > 20:
            held.pop(int(rng.integers(len(held))))
        assert all((x == k).all() for x, k in held)


def test_never_more_than_was_in_use_at_once():
    pool = Pool()
    a, b = pool.take(MANY), pool.take(MANY)
    most = pool.held
    del a, b
    c = pool.take(2 * MANY)
    assert pool.held <= most
    del c
    d = pool.take(100)
    assert pool.held <= most + rounded(100)
    del d


def test_lengths_in_turns_share_a_region():
    pool = Pool()
    long = pool.take(3 * MANY)
    address, most = long.address, pool.held
    del long
    for _ in range(3):
        short = pool.take(MANY)
        assert short.address == address
        del short
        long = pool.take(3 * MANY)
        assert long.address == address
        del long
    assert pool.held == most


def test_a_short_one_takes_no_long_region_that_others_may_need():
    pool = Pool()
    long, other = pool.take(3 * MANY), pool.take(MANY)
    address = long.address
    del long
    kept = pool.take(MANY)
    assert kept.address == address  # no more in use than before
    more = pool.take(MANY)
    assert more.address != address
    del kept, more
    third = pool.take(2 * MANY)
    assert third.address == address
    del other, third


def test_release_keeps_what_is_in_use():
    pool = Pool()
    x, gone = floats(pool, MANY), pool.take(MANY)
    x[:] = 3
    del gone
    pool.release()
    assert pool.held == rounded(4 * MANY)
    assert (x == 3).all()


def test_long_regions_lie_apart_in_the_caches():
    pool = Pool()
    leases = [pool.take(MANY) for _ in range(5)]
    places = {lease.address % HUGE_PAGE for lease in leases}
    assert len(places) == 5
    assert all(place % 64 == 0 and place % COLOUR == 0 for place in places)


def test_threads_take_and_free():
    pool, wrong = Pool(), []

    def work(mark: int) -> None:
        for _ in range(100):
            x = floats(pool, 100_000)
            x[:] = mark
            if not (x == mark).all():
                wrong.append(mark)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    gc.collect()
    assert not wrong
    assert pool.held <= 8 * rounded(400_000)  # a thread takes the next before it frees the last


@pytest.mark.parametrize("size", (0, 1, 4096, 4097, 10_000_001, 2**33 + 5))
def test_rounded(size: int):
    assert size <= rounded(size) <= max(4096, size + size / 8 + 4096)


def test_no_memory_is_an_error_of_its_own():
    with pytest.raises(MemoryError, match="no memory for a buffer of"):
        Pool().take(2**60)


@pytest.fixture
def spares(monkeypatch: pytest.MonkeyPatch) -> Spares:
    monkeypatch.setattr(heap, "shared", True)
    return Spares()


def test_scratch_is_kept_for_the_next_call(spares: Spares):
    first, second = spares.take(10_000), spares.take(50_000)
    long = second.address
    assert first.address != long  # both in use
    del first, second
    kept = spares.take(40_000)
    assert kept.address == long  # the longer one stays
    np.asarray(kept.shaped((40_000,), "|u1"))[:] = 1


def test_scratch_that_is_too_short_goes(spares: Spares):
    spares.take(100)
    x = np.asarray(spares.take(1_000_000).shaped((1_000_000,), "|u1"))
    x[:] = 7
    y = np.asarray(spares.take(1_000_000).shaped((1_000_000,), "|u1"))
    y[:] = 8
    assert (x == 7).all()


def test_long_scratch_is_not_kept_nor_that_of_other_threads(spares: Spares):
    assert not isinstance(spares.take(LONGEST_SPARE + 1), Borrowed)
    assert isinstance(spares.take(LONGEST_SPARE), Borrowed)
    found: list[object] = []
    other = threading.Thread(target=lambda: found.append(spares.take(100)))
    other.start()
    other.join()
    assert not isinstance(found[0], Borrowed)
