"""Rows that are joined of several sets meet others that are: one by one where each part has as many
rows as the other's, as messages and ends of the edges of several relations do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from .contract import check
from .users import drawn

pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")

Ends = tuple[Tensor, Tensor]


def summed(x: Tensor, y: Tensor, first: Ends, second: Ends) -> Tensor:
    """Messages of two relations, whose ends are tensors of their own."""
    sent = torch.cat([x[first[0]], y[second[0]] * 2])
    return torch.zeros_like(x).index_add(0, torch.cat([first[1], second[1]]), sent)


def crossed(x: Tensor, y: Tensor, first: Ends, second: Ends) -> Tensor:
    """The ends of one relation for messages of the other, where they are as many in all."""
    sent = torch.cat([x[first[0]], y[second[0]] * 2])
    return torch.zeros_like(x).index_add(0, torch.cat([second[1], first[1]]), sent)


def given(nodes: int, first: int, second: int) -> tuple[Tensor, Tensor, Ends, Ends]:
    torch.manual_seed(nodes)
    ends = [(torch.randint(nodes, (n,)), torch.randint(nodes, (n,))) for n in (first, second)]
    return drawn(nodes, 3), drawn(nodes, 3, seed=1), ends[0], ends[1]


def test_messages_of_two_relations_are_compiled() -> None:
    report = check(summed, given(7, 12, 5), given(9, 4, 15), given(6, 8, 8), given(5, 1, 3))
    assert report.fallbacks == []


@pytest.mark.parametrize("sizes", [(12, 5), (8, 8)])
def test_ends_of_the_other_relation(sizes: tuple[int, int]) -> None:
    check(crossed, given(7, *sizes), given(9, 4, 15), given(6, 6, 6))
