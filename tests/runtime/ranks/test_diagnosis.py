"""Who is at fault, from what ranks have noted; and the notes themselves."""

from pathlib import Path

import pytest

from gnnc.runtime.ranks import diagnosis
from gnnc.runtime.ranks.board import Board, Note, State, Status
from gnnc.runtime.ranks.diagnosis import Looker, diagnose, named
from gnnc.runtime.ranks.errors import RankFailed, Stuck


def working(since: float, patience: float = 8) -> Status:
    return Status(State.WORKING, 1, since, patience, "compile", "", ())


def waiting(since: float, *awaited: int) -> Status:
    return Status(State.WAITING, 1, since, 8, "layer", "exchange 1", awaited)


def ended(state: State) -> Status:
    return Status(state, 1, 0, 8, "layer", "", ())


@pytest.mark.parametrize(
    "statuses",
    [
        [working(0), waiting(0, 0)],  # who works waits for nobody
        [waiting(0, 1), working(95)],
        [waiting(95, 1), working(0)],  # somebody waits since a short time only
        [waiting(0, 1), working(0, patience=600)],
        [waiting(0, 1), waiting(0, 2), working(0, patience=600)],
        [waiting(0, 1), waiting(95, 0)],  # there was progress
        [waiting(95, 1), ended(State.FINISHED)],
    ],
)
def test_nothing_is_wrong_yet(statuses: list[Status]):
    assert diagnose(statuses, 0, now=100) is None


@pytest.mark.parametrize(
    ("statuses", "error", "culprits"),
    [
        ([waiting(0, 1), working(0)], Stuck, (1,)),
        ([waiting(0, 1), waiting(0, 2), working(0)], Stuck, (2,)),
        ([waiting(0, 1), waiting(0, 0)], Stuck, (0, 1)),
        ([waiting(0, 1), waiting(0, 2), waiting(0, 1)], Stuck, (0, 1, 2)),
        ([waiting(0, 1), ended(State.FINISHED)], Stuck, (1,)),
        ([waiting(99, 1), ended(State.FAILED)], RankFailed, (1,)),
        ([waiting(99, 1), ended(State.ENDED)], RankFailed, (1,)),
    ],
)
def test_in_vain(statuses: list[Status], error: type[Exception], culprits: tuple[int, ...]):
    found = diagnose(statuses, 0, now=100)
    assert found is not None
    assert (found.error, found.culprits) == (error, culprits)


def test_nobody_is_stuck_while_who_looks_was_stopped(monkeypatch: pytest.MonkeyPatch):
    """Afterwards all have their patience again, and not more."""
    board = Board.private(2, 8)
    board.write(0, waiting(1, 1))
    board.write(1, working(0))
    now = 0.0
    monkeypatch.setattr(diagnosis.time, "monotonic", lambda: now)
    looker, found = Looker(board), list[bool]()
    for now in (*(0.5 * k for k in range(10)), *(100 + 0.5 * k for k in range(20))):
        statuses, at = looker.look()
        found.append(diagnose(statuses, 0, at) is not None)
    assert found.index(True) == 10 + 17  # the first look that is more than 8 seconds later
    assert all(found[27:])


def test_named():
    assert [named(range(n)) for n in range(4)] == [
        *("no rank", "rank 0", "ranks 0 and 1", "ranks 0, 1 and 2")
    ]


def test_board_in_a_file(tmp_path: Path):
    board = Board.create(tmp_path / "board", 3, patience=5)
    note = Note(Board.open(tmp_path / "board", 3), 1, process=7, later=2)
    note.stage = "ä" * 500
    note.waiting("barrier", [0, 2])
    status = board.read(1)
    assert status.stage.startswith("ä" * 119)
    assert (status.state, status.process, status.patience) == (State.WAITING, 7, 5)
    assert (status.operation, status.awaited) == ("barrier", (0, 2))
    note.calling()
    assert board.read(1).patience == 2
    assert [s.state for s in board.read_all()] == [State.WORKING] * 3
    assert board.read(0).stage == "start"
