"""Rings: messages longer than they are, or before anybody asks for them; and what phases call."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gnnc.runtime.carrier import Direct
from gnnc.runtime.comm import Functions
from gnnc.runtime.messages import Messages, Move, Publication, Reduction, Rows
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.errors import Stuck
from gnnc.runtime.ranks.exchanges import exchanges
from gnnc.runtime.ranks.ring_calls import RingCalls
from gnnc.runtime.ranks.rings import LARGEST, SMALLEST, Rings, capacity, memory_bytes

from .ringed import run
from .test_standalone_reductions import KINDS, given

PLAN = "here to there"


@pytest.mark.parametrize("ranks", [2, 3, 8, 100, 1000])
def test_all_rings_together_are_small(ranks: int):
    each = capacity(ranks)
    assert each % 64 == 0 and SMALLEST <= each <= LARGEST
    assert memory_bytes(ranks) <= max(20 << 20, ranks**2 * (SMALLEST + 128))


@pytest.mark.parametrize("late", [0, 1])
def test_long_messages_that_are_asked_for_in_another_order(late: int):
    """The sender's first message is the receiver's last, and three times as long as a ring."""
    lengths = [3 * LARGEST // 8 + 5, 1, 100, LARGEST // 8]

    def work(c: Communicator) -> list[bool]:
        other = 1 - c.rank
        order = [0, 1, 2, 3] if c.rank != late else [3, 2, 1, 0]
        sent = [np.arange(n) + 1000 * c.rank + k for k, n in enumerate(lengths)]
        into = [np.zeros(n, np.int64) for n in lengths]
        under_way: list[Any] = []
        for k in order:
            counts = lengths[k] * np.eye(2, dtype=int)[other]
            under_way.append(c.start(sent[k], counts, into[k], counts, k))
            if c.rank == late:  # some of what it has not asked for arrives meanwhile
                for _ in range(20):
                    under_way[-1].poll()
                    time.sleep(0)
        for exchange in under_way:
            exchange.wait()
        return [bool((x == np.arange(n) + 1000 * other + k).all()) for k, (x, n) in _each(into)]

    def _each(into: list[NDArray[Any]]):
        return enumerate(zip(into, lengths, strict=True))

    assert run(2, work) == [[True] * 4] * 2


def test_an_early_message_of_another_length():
    def work(c: Communicator) -> None:
        counts = np.eye(2, dtype=int)[1 - c.rank]
        if c.rank == 0:
            c.start(np.zeros(5), 5 * counts, np.zeros(0), 0 * counts, 1).wait()
            c.barrier()
        else:
            c.barrier()  # the message is here, and nobody has asked for it
            c.start(np.zeros(0), 0 * counts, np.zeros(4), 4 * counts, 1).wait()

    with pytest.raises(ValueError, match="rank 0 sends 40 bytes to rank 1, which expects 32"):
        run(2, work)


# ---------------------------------------------------------------- the calls of a phase


def calls_of(c: Communicator, messages: Messages, counts: dict[str, list[int]]) -> RingCalls:
    assert isinstance(c, Rings)
    return RingCalls("forward", messages, c, counts)


def moves_of(row: tuple[int, ...], sent: int, received: int) -> Messages:
    rows = (Rows((n, *row), np.dtype(np.float32)) for n in (sent, received))
    return Messages(0, (Move(PLAN, *rows),), (), ())


def functions_of(calls: RingCalls) -> Functions:
    return Functions.from_address(calls.address)


@pytest.mark.parametrize("row", [(), (3,), (40_000, 3)])
def test_moves_of_a_phase(row: tuple[int, ...]):
    """Ranks send each other, and themselves, other numbers of rows, again and again."""
    counts = np.array([[2, 0, 3], [1, 1, 0], [0, 4, 0]])

    def work(c: Communicator) -> list[bool]:
        here, there = counts[c.rank].tolist(), counts[:, c.rank].tolist()
        messages = moves_of(row, sum(here), sum(there))
        calls = calls_of(c, messages, {"here": here, "there": there})
        functions, right = functions_of(calls), []
        for turn in range(3):
            rows = [[_rows(turn, a, b, counts[a, b], row) for b in range(3)] for a in range(3)]
            sent = np.concatenate(rows[c.rank])
            received = np.full((sum(there), *row), np.nan, np.float32)
            functions.start(calls.address, 0, sent.ctypes.data, received.ctypes.data)
            functions.wait(calls.address, 0)
            calls.end()
            right.append(np.array_equal(received, np.concatenate([r[c.rank] for r in rows])))
        return right

    assert run(3, work) == [[True] * 3] * 3


def _rows(turn: int, a: int, b: int, count: int, row: tuple[int, ...]) -> NDArray[Any]:
    rng = np.random.default_rng([turn, a, b])
    return rng.standard_normal((count, *row)).astype(np.float32)


def test_reductions_of_a_phase_have_the_bits_of_the_communicator():
    def work(c: Communicator) -> list[bool]:
        right: list[bool] = []
        for kind in KINDS:
            arrays = [np.ascontiguousarray(x) for x in given(c.rank)] + [np.zeros(0, np.float32)]
            wanted = [c.all_reduce(x, kind) for x in arrays]
            buffers = tuple(Rows(x.shape, x.dtype) for x in arrays)
            calls = calls_of(c, Messages(0, (), (Reduction(kind, buffers),), ()), {})
            addresses = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
            functions_of(calls).all_reduce(calls.address, 0, addresses)
            calls.end()
            right += [x.tobytes() == w.tobytes() for x, w in zip(arrays, wanted, strict=True)]
        return right

    assert all(all(right) for right in run(3, work))


def test_an_error_is_raised_behind_the_phase():
    """A rank that expects another number of rows is told by whom, and in which phase."""

    def work(c: Communicator) -> None:
        counts = np.eye(2, dtype=int)[1 - c.rank].tolist()
        more = [(1 + c.rank) * n for n in counts]
        calls = calls_of(c, moves_of((), 1 + c.rank, 1), {"here": more, "there": counts})
        sent, received = np.zeros(2, np.float32), np.zeros(1, np.float32)
        functions = functions_of(calls)
        functions.start(calls.address, 0, sent.ctypes.data, received.ctypes.data)
        functions.wait(calls.address, 0)
        assert functions.failed == (c.rank == 0)
        calls.end()

    with pytest.raises(ValueError, match="here to there': rank 1 sends 8 bytes to") as caught:
        run(2, work)
    assert caught.value.__notes__[0] == "in @forward: move 0"


def test_a_rank_that_does_not_come():
    def work(c: Communicator) -> None:
        counts = np.eye(2, dtype=int)[1 - c.rank].tolist()
        calls = calls_of(c, moves_of((), 1, 1), {"here": counts, "there": counts})
        rows = np.zeros(2, np.float32)
        if c.rank == 0:
            functions = functions_of(calls)
            functions.start(calls.address, 0, rows.ctypes.data, rows[1:].ctypes.data)
            functions.wait(calls.address, 0)
            calls.end()

    with pytest.raises(Stuck, match="rank 1 has finished; rank 0 waits for rank 1 in exchange"):
        run(2, work, patience=0.3)


def test_what_needs_python():
    """Rows that others read, and numbers of other types, are carried as between machines."""

    def work(c: Communicator) -> list[bool]:
        carrier = exchanges(c, {})
        assert isinstance(carrier, Direct)
        truths = Reduction("max", (Rows((1,), np.dtype(np.bool_)),))
        published = Publication(PLAN, (4,), np.zeros(1, np.int64))
        return [
            carrier.calls("f", Messages(0, (), reductions, publications)) is None
            for reductions, publications in [((truths,), ()), ((), (published,)), ((), ())]
        ]

    assert run(2, work) == [[True, True, False]] * 2
