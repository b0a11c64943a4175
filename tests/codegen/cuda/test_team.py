"""How threads share a row."""

import pytest

from gnnc.codegen.cuda.team import Team


@pytest.mark.parametrize(
    ("lanes", "length", "tile", "turns"),
    [
        (16, 64, 4, 1),
        (32, 64, 2, 1),  # all lanes have some
        (16, 40, 4, 1),  # a load an edge, not two
        (16, 20, 2, 1),
        (16, 4, 1, 1),
        (32, 160, 4, 2),
        (16, 39, 1, 3),
        (32, 1024, 4, 8),
    ],
)
def test_lanes_take_few_turns(lanes, length, tile, turns):
    team = Team(256, lanes)
    assert team.tile(length, 4) == tile
    assert team.turns(length, tile) == turns


def test_tiles_are_at_most_a_load():
    team = Team(256, 1)
    assert [team.tile(64, size) for size in (1, 4, 8)] == [4, 4, 2]
