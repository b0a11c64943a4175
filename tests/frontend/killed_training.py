"""A training that is killed again and again, and the same one without a break.

`python -m gnnc.tests.frontend.killed_training MODE FOLDER KILL ..` leaves the checkpoint and the
answer of each in FOLDER, as whole.pt and whole.json, broken.pt and broken.json. A KILL is a moment
of the writing of a checkpoint, or `after:SECONDS` from the first on. Each attempt is a fork, and
dies as the system kills: no handler of Python's runs.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from gnnc.frontend.tools import train
from gnnc.frontend.tools.training import Settings
from gnnc.runtime import durable_file

EVERY = 2
SETTINGS: dict[str, Any] = {
    **{"model": "gcn", "dataset": "default", "root": "", "nodes": 60, "epochs": 11, "hidden": 4},
    **{"layers": 2, "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-4, "eval_every": 3, "seed": 1},
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Halting(io.FileIO):
    """A file that is written in halves."""

    def __init__(self, path: Path, mode: str, between: Callable[[], None]):
        super().__init__(path, mode)
        self.between = between

    def write(self, content: memoryview) -> int:
        half = len(content) // 2
        super().write(content[:half])
        self.between()
        return half + super().write(content[half:])


class Dying:
    """The module `os`, and `open`, for a process that dies in its second checkpoint."""

    def __init__(self, moment: str):
        self.moment = moment
        self.checkpoints = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def at(self, moment: str) -> None:
        if self.checkpoints == 2 and moment == self.moment:
            die()

    def open_file(self, path: Path, mode: str) -> Halting:
        self.checkpoints += 1
        return Halting(path, mode, lambda: self.at("half written"))

    def fsync(self, descriptor: int) -> None:
        self.at("written")
        os.fsync(descriptor)
        self.at("synchronised")

    def replace(self, old: Path, new: Path) -> None:
        os.replace(old, new)
        self.at("renamed")


def attempt(mode: str, file: Path, kill: str = "") -> None:
    """Trains in a fork, and sees it end as it should."""
    told, tells = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(told)
        work(mode, file, kill, tells)
    os.close(tells)
    ends = [-signal.SIGKILL] if kill else [0]
    if kill.startswith("after:"):
        ends.append(0)
        os.read(told, 1)
        time.sleep(float(kill.removeprefix("after:")))
        os.kill(process, signal.SIGKILL)
    os.close(told)
    ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert ended in ends, (kill, ended)


def work(mode: str, file: Path, kill: str, tells: int) -> NoReturn:
    try:
        durable_file.os = dying = Dying(kill)
        durable_file.open = dying.open_file
        kept, settings = train.Kept(file, EVERY), Settings(**SETTINGS, mode=mode)
        answer = train.train(settings, kept, lambda _: tell(tells))
        file.with_suffix(".json").write_text(json.dumps(answer))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def tell(tells: int) -> None:
    """That a checkpoint is about to be written; only the first time somebody listens."""
    with suppress(BrokenPipeError):
        os.write(tells, b".")


def main(mode: str, folder: Path, kills: list[str]) -> None:
    train.warm_up_once = lambda compiled: None  # it is there for the measured memory alone
    attempt(mode, folder / "whole.pt")
    for kill in kills:
        attempt(mode, folder / "broken.pt", kill)
    attempt(mode, folder / "broken.pt")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
