"""The plan of memory: nothing meets, and little more is taken than what is in use at once."""

from __future__ import annotations

import itertools
import random

import pytest

from gnnc.runtime.arena import ALWAYS, Arena, Use, arena, most_in_use

NOTHING = Use(0, 0, ALWAYS)
TOGETHER = 2**62
"""No buffer is so long that it has a room of its own."""


def drawn(seed: int, count: int = 12, steps: int = 8) -> list[Use]:
    """Buffers of few sizes, as those of programs are."""
    source = random.Random(seed)
    found: list[Use] = []
    for _ in range(count):
        first = source.randrange(steps)
        size = 64 * source.choice((1, 2, 3, 4, 8, 16))
        found.append(Use(size, first, min(steps - 1, first + source.randrange(4))))
    return found


def check(there: list[Use], uses: list[Use], found: Arena) -> None:
    """Every buffer is inside its room, and apart from those that are in use meanwhile."""
    placed = [*zip(there, ((r, 0) for r in range(len(there))), strict=True)]
    placed += zip(uses, found.places, strict=True)
    for use, (room, offset) in placed:
        assert 0 <= offset and offset % 64 == 0 and offset + use.size <= found.rooms[room]
    for (a, (r, at)), (b, (s, other)) in itertools.combinations(placed, 2):
        if r == s and a.first <= b.last and b.first <= a.last:
            assert at + a.size <= other or other + b.size <= at


# ------------------------------------------------------------------------- the bound


def test_the_bound_of_a_chain_is_two_neighbours() -> None:
    chain = [Use(10, 0, 1), Use(30, 1, 2), Use(20, 2, 3), Use(5, 3, 4)]
    assert most_in_use(chain) == 50


def test_what_lives_across_counts_at_each_step() -> None:
    assert most_in_use([Use(100, 0, 9), Use(10, 0, 1), Use(20, 5, 5)]) == 120
    assert most_in_use([]) == 0


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_the_sum_at_the_worst_step(seed: int) -> None:
    uses = drawn(seed)
    at = [sum(u.size for u in uses if u.first <= k <= u.last) for k in range(20)]
    assert most_in_use(uses) == max(at)


# ------------------------------------------------------------------------- the plan


@pytest.mark.parametrize("alone", [0, 256, TOGETHER])
@pytest.mark.parametrize("seed", range(20))
def test_nothing_meets(seed: int, alone: int) -> None:
    uses = drawn(seed)
    check([NOTHING], uses, arena([NOTHING], uses, alone))


@pytest.mark.parametrize("seed", range(40))
def test_the_plan_is_near_the_bound(seed: int) -> None:
    uses = drawn(seed)
    (room,) = arena([NOTHING], uses, TOGETHER).rooms
    assert most_in_use(uses) <= room <= 1.2 * most_in_use(uses)


@pytest.mark.parametrize("seed", range(10))
def test_few_buffers_lie_as_well_as_they_can(seed: int) -> None:
    """Any plan that cannot be made smaller by moving one buffer down comes of placing the buffers
    at the first gap in some order: the least of all orders is the least of all plans."""
    uses = drawn(seed, count=6, steps=5)
    (room,) = arena([NOTHING], uses, TOGETHER).rooms
    least = min(first_fit(order) for order in itertools.permutations(uses))
    assert least <= room <= 1.2 * least


def first_fit(order: tuple[Use, ...]) -> int:
    """The bytes taken where each lies as low as those before it let it."""
    placed: list[tuple[Use, int]] = []
    for use in order:
        at = 0
        meet = [(o, o + u.size) for u, o in placed if u.first <= use.last and use.first <= u.last]
        for begin, end in sorted(meet):
            if at + use.size <= begin:
                break
            at = max(at, end)
        placed.append((use, at))
    return max(at + use.size for use, at in placed)


def test_rows_of_any_domain_and_width_share() -> None:
    """Three short ones lie in the place of a long one that is not in use any more."""
    uses = [Use(4096, 0, 1), *(Use(size, 2, 3) for size in (1024, 2048, 960))]
    found = arena([NOTHING], uses, 0)
    assert found.rooms == [0, 4096]
    assert sorted(found.places) == [(1, 0), (1, 0), (1, 2048), (1, 3072)]


def test_long_ones_have_rooms_of_their_own() -> None:
    uses = [Use(4096, 0, 3), Use(2048, 0, 3), Use(100, 0, 3)]
    found = arena([Use(64, 0, ALWAYS)], uses, 1024)
    assert found.rooms == [64 + 100, 4096, 2048]
    assert found.places == [(1, 0), (2, 0), (0, 64)]


def test_one_room_where_rooms_of_their_own_take_much_more() -> None:
    """Two long ones, and later three that fit them only if the two are one."""
    uses = [Use(1600, 0, 0), Use(1600, 0, 0), *[Use(1024, 1, 1)] * 3]
    found = arena([NOTHING], uses, 0)
    assert found.rooms == [3200]


def test_a_room_that_is_lent_does_not_grow() -> None:
    """It is free after its own use, for what fits."""
    lent = Use(512, 0, 1)
    found = arena([NOTHING, lent], [Use(512, 2, 2), Use(576, 2, 2), Use(64, 1, 2)], TOGETHER)
    assert found.places == [(1, 0), (0, 0), (0, 576)]
    assert found.rooms == [640, 512]


def test_the_same_buffers_lie_at_the_same_places() -> None:
    uses = drawn(3, count=40)
    assert arena([NOTHING], uses, 128) == arena([NOTHING], uses, 128)
