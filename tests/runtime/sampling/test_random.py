"""The generator against published vectors, and what is made of its words."""

import ctypes
import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from gnnc.runtime.cpu import toolchain
from gnnc.runtime.sampling import kernels

FACES = """
void one(const uint32_t *key, uint32_t *c) { philox((stream){key[0], key[1]}, c); }
void many(const uint32_t *key, const uint32_t *c0, const uint32_t *c1, const uint32_t *c2,
          int64_t n, uint32_t *out) {
    philox_many((stream){key[0], key[1]}, c0, c1, c2, n, out);
}
uint32_t bounded(uint32_t n, uint32_t word, uint32_t t) {
    return below(n, word, (stream){1, 2}, t, 3, 4);
}
uint32_t again(uint32_t t, uint32_t attempt) { return redraw((stream){1, 2}, t, 3, 4, attempt); }
int64_t bounded_long(uint64_t n, uint32_t a) { return below_long(n, (stream){1, 2}, a, 7); }
double real(uint32_t high, uint32_t low) { return unit(high, low); }
"""

# known answers of Random123 1.09 for philox4x32 with 10 rounds: counter, key, output
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.fixture(scope="module")
def faces() -> ctypes.CDLL:
    library = toolchain.load(toolchain.compile_source(kernels.source() + FACES))
    library.bounded.argtypes = [ctypes.c_uint32] * 3
    library.again.argtypes = library.real.argtypes = [ctypes.c_uint32] * 2
    library.bounded.restype = library.again.restype = ctypes.c_uint32
    library.bounded_long.argtypes = [ctypes.c_uint64, ctypes.c_uint32]
    library.bounded_long.restype = ctypes.c_int64
    library.real.restype = ctypes.c_double
    return library


def words(values: object) -> np.ndarray:
    return np.array(values, np.uint32)


@pytest.mark.parametrize("counter, key, output", KNOWN)
def test_published_vectors(faces: ctypes.CDLL, counter, key, output):
    c, k = words(counter), words(key)
    faces.one(k.ctypes.data_as(ctypes.c_void_p), c.ctypes.data_as(ctypes.c_void_p))
    assert tuple(c) == output


@pytest.mark.parametrize("count", [0, 1, 7, 16, 37])
def test_many_blocks_at_once(faces: ctypes.CDLL, count: int):
    rng = np.random.default_rng(0)
    counters = [words(rng.integers(0, 2**32, count)) for _ in range(3)]
    key, out = words([5, 6]), np.zeros((4, count), np.uint32)
    at = [ctypes.c_void_p(a.ctypes.data) for a in (key, *counters, out)]
    faces.many(*at[:4], ctypes.c_int64(count), at[4])
    for i in range(count):
        c = words([*(a[i] for a in counters), 0])
        faces.one(at[0], c.ctypes.data_as(ctypes.c_void_p))
        assert np.array_equal(out[:, i], c)


def refusing(n: int, bits: int, words: Iterable[int]) -> int:
    """Lemire's rule: of the words that come one after the other the first is taken whose product
    has a lower half of 2**bits mod n or more."""
    products = (word * n for word in words)
    return next(p >> bits for p in products if p % 2**bits >= 2**bits % n)


@pytest.mark.parametrize("n", [1, 3, 2**31 - 1, 2**31 + 1])
def test_words_that_would_favour_some_numbers_are_refused(faces: ctypes.CDLL, n: int):
    """Of 2**32 words for 2**31 + 1 numbers nearly half are, some several times."""
    low = [0, 1, 2, 2**32 - 1, *np.random.default_rng(0).integers(0, 2**32, 300).tolist()]
    for draw, word in enumerate(low):
        later = (faces.again(draw, attempt) for attempt in itertools.count(1))
        assert faces.bounded(n, word, draw) == refusing(n, 32, itertools.chain([word], later))


@pytest.mark.parametrize("n", [1, 5, 2**63 + 1])
def test_the_same_with_64_bits(faces: ctypes.CDLL, n: int):
    def block(draw: int, attempt: int) -> int:
        c, key = words([draw, 7, 0, attempt]), words([1, 2])
        faces.one(ctypes.c_void_p(key.ctypes.data), ctypes.c_void_p(c.ctypes.data))
        return int(c[0]) << 32 | int(c[1])

    for draw in range(200):
        wanted = refusing(n, 64, (block(draw, attempt) for attempt in itertools.count()))
        assert faces.bounded_long(n, draw) == wanted


def test_numbers_lie_within_the_unit_interval(faces: ctypes.CDLL):
    assert 0 < faces.real(0, 0) < 2**-52
    assert 1 - 2**-52 < faces.real(2**32 - 1, 2**32 - 1) < 1
    assert faces.real(2**31, 0) == 0.5 + 2**-53
