"""How a call of a program over ranks begins: what ranks tell each other before anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....runtime.ranks.communicator import Communicator

LEAST = -(2**63)
"""No number is less: what a rank says that has nothing to say."""


class Begun(NamedTuple):
    """What each rank says of the call, of which all learn the greatest: the number of its program
    and its negative, likewise a checksum of the few numbers that the call is given, whether it has
    to prepare the graph, the number that masks of dropout are drawn by, and whether it still has to
    choose the program."""

    number: int
    minus_number: int
    given: int
    minus_given: int
    unprepared: int
    key: int
    chooses: int = 0


CHOOSES = Begun(LEAST, LEAST, LEAST, LEAST, LEAST, LEAST, 1)


def begun(communicator: Communicator, mine: Begun, of_all: Sequence[int]) -> Begun:
    """The greatest of what ranks say of a call, once all have a program; `of_all` is what that of
    this rank was chosen by, which those are told that still have to choose theirs."""
    while (most := _most(communicator, mine)).chooses:
        _told(communicator, of_all)
    return most


def chosen_by(communicator: Communicator, mine: Sequence[int]) -> tuple[int, ...]:
    """The numbers that a program is chosen by in the call that begins: the sums of what ranks have,
    each as many, or those that others have chosen by in an earlier call. Ranks that trace a program
    anew, which others have, so get the same.

    Raises:
        Disagreement: ranks choose by other numbers: they call other programs.
    """
    _most(communicator, CHOOSES)
    known = _told(communicator, (), len(mine))
    if known is not None:
        return known
    return tuple(communicator.all_reduce(np.array(mine, np.int64), "sum").tolist())


def _most(communicator: Communicator, mine: Begun) -> Begun:
    return Begun(*communicator.all_reduce(np.array(mine, np.int64), "max").tolist())


def _told(
    communicator: Communicator, of_all: Sequence[int], count: int | None = None
) -> tuple[int, ...] | None:
    """What those say that have chosen; None where nobody has. `count` is given by those that have
    not."""
    count = len(of_all) if count is None else count
    communicator.agree("how many numbers the program of a call is chosen by", str(count))
    mine = [1, *of_all] if of_all else [0] + [LEAST] * count
    known, *numbers = communicator.all_reduce(np.array(mine, np.int64), "max").tolist()
    return tuple(numbers) if known else None
