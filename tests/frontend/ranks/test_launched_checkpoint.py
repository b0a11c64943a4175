"""Checkpoints of ranks that are processes: the disk is full, or ranks are killed at any moment."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnc
from gnnc.tests.runtime.ranks.launching import launched, one_at_a_time  # noqa: F401

from .checkpointed import AT, STEPS, Training, assert_close
from .cut_models import graph, net

pytest.importorskip("mpi4py")

ONE_THREAD = ("--threads", "1")

FULL_DISK = """
import resource
from pathlib import Path
from gnnc.tests.frontend.ranks.checkpointed import AT, Training
from gnnc.tests.frontend.ranks.cut_models import graph, net
path = Path(sys.argv[1])
training = Training(net("sage"), graph(200, 900))
training.run(AT)
training.save(path)
training.run(1)
before = training.state()
if rank == 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
try:
    training.save(path)
except OSError as error:
    assert str(error) == f"[Errno 27] checkpoint {path} cannot be written: File too large", error
    told = c.gather("an error")
if rank == 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert told == ["an error"] * size
training.run(1)
training.load(path)
training.run(1)
gnnc.save_checkpoint(path.with_name("later.pt"), before=before, again=training.state())
"""


@pytest.mark.long
def test_full_disk_and_another_number_of_ranks(tmp_path: Path) -> None:
    """All ranks have the error and can go on; the checkpoint that was there is loaded by them, and
    by one process."""
    path = tmp_path / "run.pt"
    result = launched(tmp_path, 2, FULL_DISK, str(path), options=ONE_THREAD, timeout=300)
    assert result.returncode == 0, result.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"script.py", "run.pt", "later.pt"}
    later = gnnc.load_checkpoint(tmp_path / "later.pt")
    assert_close(later["again"], later["before"], 0)
    whole = Training(net("sage"), graph(200, 900))
    torch.manual_seed(1)
    whole.load(path)
    whole.run(1)
    assert len(whole.losses) == AT + 1
    assert_close(whole.state(), later["before"], 1e-9)


LONG_RUN = 600
"""Steps of a training that is killed."""
EVERY = 3
"""Steps between its checkpoints."""

KILLED = """
import threading
from pathlib import Path
from gnnc.tests.frontend.ranks.checkpointed import Training
from gnnc.tests.frontend.ranks.cut_models import graph, net
path, steps, every, victim, delay = Path(sys.argv[1]), *map(int, sys.argv[2:5]), float(sys.argv[5])
training = Training(net("sage"), graph(200, 900))
if path.exists():
    training.load(path)
if rank == 0:
    print("from step", len(training.losses))

def go_on():
    training.run(min(every, steps - len(training.losses)))
    training.save(path)

go_on()  # compiles
begun = time.monotonic()
go_on()
if rank == victim:
    delay *= time.monotonic() - begun
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
with c.stage("train"):
    while len(training.losses) < steps:
        go_on()
    if rank == victim:
        time.sleep(60)  # until it is killed
"""


def run(folder: Path, name: str, victim: int = -1, delay: float = 0) -> Any:
    """Trains, from the checkpoint on where there is one; a rank kills itself, at whatever it does,
    after `delay` times the seconds from one checkpoint to the next."""
    numbers = (str(x) for x in (LONG_RUN, EVERY, victim, delay))
    given = (str(folder / name), *numbers)
    return launched(folder, 2, KILLED, *given, options=ONE_THREAD, timeout=300)


@pytest.mark.long
def test_killed_at_random(tmp_path: Path) -> None:
    draw = random.Random(5)
    whole = run(tmp_path, "whole.pt")
    assert whole.returncode == 0, whole.stderr
    starts: list[int] = []
    for _ in range(10):
        victim = draw.randrange(2)
        result = run(tmp_path, "broken.pt", victim, draw.uniform(0, 15))
        assert result.returncode == 1
        (start,) = re.findall(r"from step (\d+)", result.stdout)
        starts.append(int(start))
        assert re.search(f"rank {victim} failed in stage", result.stderr), result.stderr
        assert re.search(r"its process \d+ was killed by signal 9", result.stderr)
        assert f"rank {1 - victim} failed" not in result.stderr
    last = run(tmp_path, "broken.pt")
    assert last.returncode == 0, last.stderr
    assert starts == sorted(starts) and len(set(starts)) > 5
    assert all(start % EVERY == 0 for start in starts)
    found = [gnnc.load_checkpoint(tmp_path / f"{name}.pt") for name in ("whole", "broken")]
    assert len(found[0]["losses"]) == LONG_RUN
    assert_close(found[1], found[0], 0)
    assert [p.name for p in tmp_path.glob("*.new")] == []


RESTARTED = """
from pathlib import Path
from gnnc.tests.frontend.ranks.checkpointed import AT, STEPS, Training
from gnnc.tests.frontend.ranks.cut_models import graph, net
path, mode = Path(sys.argv[1]), sys.argv[2]
training = Training(net("gat"), graph(200, 900), mode)
if sys.argv[3] == "whole":
    training.run(AT)
    training.save(path)
else:
    training.load(path)
training.run(STEPS - AT)
gnnc.save_checkpoint(path.with_name(sys.argv[3]), state=training.state())
"""


@pytest.mark.long
@pytest.mark.parametrize("mode", ["step", "loop"])
@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 1), (1, 3), (2, 4)])
def test_goes_on(tmp_path: Path, before: int, after: int, mode: str) -> None:
    states: list[Any] = []
    for ranks, name in ((before, "whole"), (after, "again")):
        arguments = (str(tmp_path / "run.pt"), mode, name)
        result = launched(tmp_path, ranks, RESTARTED, *arguments, options=ONE_THREAD, timeout=300)
        assert result.returncode == 0, result.stderr
        states.append(gnnc.load_checkpoint(tmp_path / name)["state"])
        assert len(states[-1]["losses"]) == STEPS
    assert_close(states[1], states[0], 0 if before == after else 1e-9)
