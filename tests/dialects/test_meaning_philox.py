"""Philox against published vectors, and the map from entries to random numbers."""

import numpy as np
import pytest

from gnnc.dialects.meaning import philox

# known answers of Random123 1.09 for philox4x32 with 10 rounds: counter, key, output
VECTORS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize("counter, key, want", VECTORS)
def test_known_answers(counter, key, want):
    c0, c1, c2, c3 = (np.full(1, c, np.uint64) for c in counter)
    out = philox.philox4x32((c0, c1, c2, c3), (key[0], key[1]))
    assert [int(w[0]) for w in out] == want


def test_one_block_serves_four_columns():
    """The definition, entry by entry."""
    key, site, columns = -(2**40) - 12345, 7, 10
    got = philox.words(key, site, range(3), columns)
    k = (key % 2**32, (key >> 32) % 2**32)
    for row in range(3):
        for column in range(columns):
            counter = [np.full(1, c, np.uint64) for c in (column // 4, row, 0, site)]
            out = philox.philox4x32(tuple(counter), k)
            assert got[row, column] == int(out[column % 4][0])


def test_a_row_does_not_depend_on_the_others():
    assert np.array_equal(philox.words(5, 1, range(100), 6)[:10], philox.words(5, 1, range(10), 6))
    assert np.array_equal(philox.words(5, 1, range(10), 9)[:, :6], philox.words(5, 1, range(10), 6))


def test_keys_and_sites_differ():
    base = philox.words(1, 0, range(50), 8)
    for other in (
        philox.words(2, 0, range(50), 8),
        philox.words(1, 1, range(50), 8),
        philox.words(-1, 0, range(50), 8),
    ):
        assert np.mean(base == other) < 0.01


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_rate_and_scale(p):
    y = philox.dropout(np.ones((4000, 10)), 3, 0, p, range(4000))
    assert set(np.unique(y)) == {0.0, 1 / (1 - p)}
    assert abs(np.mean(y == 0) - p) < 0.01
    assert abs(np.mean(y) - 1) < 0.05


def test_entries_are_dropped_as_in_their_rows():
    rows, columns = np.repeat([3, 5, -7, 2**40], 9), np.tile(np.arange(9), 4)
    want = philox.words(11, 2, [3, 5, -7, 2**40], 9).ravel()
    assert np.array_equal(philox.word_at(11, 2, rows, columns), want)
    dense = philox.dropout(np.ones((4, 9)), 11, 2, 0.4, [3, 5, -7, 2**40])
    entries = philox.dropout(np.ones(36), 11, 2, 0.4, rows, columns)
    assert np.array_equal(entries, dense.ravel())


def test_ends():
    x = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(philox.dropout(x, 3, 0, 0.0, range(2)), x)
    assert np.array_equal(philox.dropout(x, 3, 0, 1.0, range(2)), 0 * x)
    assert philox.threshold(0.0) == 0 and philox.threshold(1.0) == 2**32
    assert philox.threshold(0.5) == 2**31
    assert philox.dropout(np.zeros((0, 3)), 3, 0, 0.5, range(0)).shape == (0, 3)
    assert philox.dropout(np.ones(3), 3, 0, 0.0, range(3)).shape == (3,)
