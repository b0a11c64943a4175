"""What ranks leave in the folder of their launcher when they end badly."""

from __future__ import annotations

import json
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from .errors import RankFailed, RanksError, Stuck


def board_file(folder: Path) -> Path:
    """The board of all ranks."""
    return folder / "board"


def output_file(folder: Path, rank: int) -> Path:
    """What a rank other than 0 printed."""
    return folder / f"{rank}.output"


def stack_file(folder: Path, rank: int) -> Path:
    """Where a rank was when it was asked, by SIGUSR1."""
    return folder / f"{rank}.stack"


def _failure_file(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.failure"


@dataclass(frozen=True)
class Failure:
    """How a rank ended: its traceback or what else is known, and that in a line. One that `follows`
    ended because another had; `stuck` names those that kept it waiting."""

    text: str
    line: str
    follows: bool = False
    stuck: tuple[int, ...] = ()

    @classmethod
    def of(cls, error: BaseException, script: str) -> Failure:
        """That by an error, with the frames of the script and of what it called."""
        if isinstance(error, SystemExit):
            line = f"the script ended with status {error.code}"
            return cls(line + "\n", line)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != script:
            trace = trace.tb_next
        shown = traceback.TracebackException(
            type(error), error, trace or error.__traceback__, compact=True
        )
        line = "".join(traceback.format_exception_only(error)).rstrip()
        if isinstance(error, RanksError):
            line = str(error)
        stuck = error.culprits if isinstance(error, Stuck) else ()
        follows = isinstance(error, RankFailed)
        return cls("".join(shown.format()), line, follows, stuck)

    def write(self, folder: Path, rank: int) -> None:
        """Leaves it for the launcher."""
        _failure_file(folder, rank).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path, rank: int) -> Failure:
        """What a rank left."""
        found = json.loads(_failure_file(folder, rank).read_text())
        return cls(found["text"], found["line"], found["follows"], tuple(found["stuck"]))
