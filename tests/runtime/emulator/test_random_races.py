"""Random accesses and synchronizations: a fault exactly where some pair of accesses is a race."""

import numpy as np
import pytest

from gnnc.runtime.emulator import EmulatedFault

from .launching import ORDERS, frozen, run

TEXT = """
__device__ __forceinline__ int act(int *words, int op, int at) {
    if (op == 1) return words[at / 4];
    if (op == 2) words[at / 4] = at;
    if (op == 3) return atomicAdd(&words[at / 4], 1);
    if (op == 4) return ((char *)words)[at];
    if (op == 5) ((char *)words)[at] = 1;
    return 0;
}

__global__ void k(const int *ops, const unsigned *places, int *words, int *out, int steps) {
    GNNC_SHARED(memory);
    int *mine = (int *)memory, t = threadIdx.x, first = (blockIdx.x * blockDim.x + t) * steps;
    for (int i = t; i < WORDS; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    int sum = 0;
    for (int i = first; i < first + steps; ++i) {
        if (ops[i] == 6) __syncwarp(places[i]);
        else if (ops[i] == 7) __syncthreads();
        else if (ops[i] >= 10) sum += act(mine, ops[i] - 10, places[i]);
        else sum += act(words, ops[i], places[i]);
    }
    out[first / steps] = sum;
}
GNNC_EXPORT(k)
"""
WORDS = 12
READ, WRITE, ATOMIC, READ_BYTE, WRITE_BYTE, SYNCWARP, BARRIER = range(1, 8)
SHARED = 10
"""What is added to an access of shared memory."""
BLOCKS, THREADS, STEPS = 2, 40, 7
READS = (READ, READ_BYTE)


def program(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What each thread does in each step. Most accesses are reads, or of words of one's own."""
    rng = np.random.default_rng(seed)
    ops = np.zeros((BLOCKS, THREADS, STEPS), np.int32)
    places = np.zeros(ops.shape, np.uint32)
    for b in range(BLOCKS):
        words = rng.integers(0, WORDS * 4, 3)
        for i in range(STEPS):
            kind = rng.choice(["barrier", "groups", "access"], p=[0.2, 0.4, 0.4])
            if kind == "barrier":
                ops[b, :, i] = BARRIER
            elif kind == "groups":
                groups(rng, ops[b, :, i], places[b, :, i])
            else:
                accesses(rng, words, ops[b, :, i], places[b, :, i])
    return ops, places


def groups(rng: np.random.Generator, ops: np.ndarray, places: np.ndarray) -> None:
    """Lanes of a warp fall in groups that meet; those of group 0 do nothing."""
    group = rng.choice(
        3, THREADS, p=rng.choice([[0.1, 0.9, 0.0], [0.1, 0.1, 0.8], [0.2, 0.4, 0.4]])
    )
    for t in range(THREADS):
        same = [u for u in range(THREADS) if u // 32 == t // 32 and group[u] == group[t]]
        if group[t]:
            ops[t], places[t] = SYNCWARP, sum(1 << u % 32 for u in same)


def accesses(rng: np.random.Generator, words: np.ndarray, ops: np.ndarray, places: np.ndarray):
    kinds = [READ, WRITE, ATOMIC, READ_BYTE, WRITE_BYTE]
    kind = rng.choice(kinds, p=[0.35, 0.25, 0.15, 0.15, 0.1])
    several = kind in (READ, READ_BYTE, ATOMIC)
    count = rng.choice([1, 2, 4, 20]) if several else 1
    who = rng.choice(rng.choice([4, THREADS]), count) + rng.integers(0, 2)
    who %= THREADS
    ops[who] = kind + SHARED * rng.integers(0, 2)
    places[who] = rng.choice(words)


def is_race(ops: np.ndarray, places: np.ndarray) -> bool:
    """By vector clocks of all threads, and all pairs of accesses."""
    found = [a for b in range(BLOCKS) for a in clocked(b, ops[b], places[b])]
    return any(conflict(a, b) for i, a in enumerate(found) for b in found[:i])


def clocked(block: int, ops: np.ndarray, places: np.ndarray):
    """Accesses of a block: block, thread, step, operation, place, and what comes before."""
    clocks = np.full((THREADS, THREADS), -1)
    out = []
    for i in range(STEPS):
        now = clocks.copy()
        for t in range(THREADS):
            op = ops[t, i]
            if op in (SYNCWARP, BARRIER):
                mask = int(places[t, i])
                named = [u for u in range(THREADS) if u // 32 == t // 32 and mask >> u % 32 & 1]
                met = range(THREADS) if op == BARRIER else named
                now[t] = clocks[met].max(0)
                now[t, met] = i
            elif op:
                out.append((block, t, i, int(op), int(places[t, i]), clocks[t].copy()))
        clocks = now
    return out


def conflict(a: tuple, b: tuple) -> bool:
    """Whether two accesses, by different threads, of one byte are ordered by nothing."""
    (block, thread, step, op, place, clock), (block2, thread2, step2, op2, place2, clock2) = a, b
    if (block, thread) == (block2, thread2) or op // SHARED != op2 // SHARED:
        return False
    if block == block2 and (clock[thread2] >= step2 or clock2[thread] >= step):
        return False
    if block != block2 and op >= SHARED:
        return False
    kinds = {op % SHARED, op2 % SHARED}
    if kinds <= set(READS) or kinds == {ATOMIC}:
        return False
    if kinds & {READ_BYTE, WRITE_BYTE} == kinds:
        return place == place2
    return place // 4 == place2 // 4


def seen(ops: np.ndarray, places: np.ndarray, order: int) -> bool:
    words, out = np.zeros(WORDS, np.int32), np.zeros(BLOCKS * THREADS, np.int32)
    text = TEXT.replace("WORDS", str(WORDS))
    given = frozen(ops), frozen(places), words, out, np.int32(STEPS)
    try:
        run(text, *given, grid=BLOCKS, block=THREADS, shared=WORDS * 4, order=order)
    except EmulatedFault as fault:
        assert "race: thread" in str(fault)
        return True
    return False


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_races_are_found_and_nothing_else(first):
    outcomes = []
    for seed in range(first, first + 50):
        ops, places = program(seed)
        outcomes.append(is_race(ops, places))
        assert [seen(ops, places, order) for order in ORDERS] == [outcomes[-1]] * 4, seed
    assert 10 < sum(outcomes) < 40
