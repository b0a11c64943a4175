"""Ranks that are processes: `gnnc launch` runs scripts, and ends all ranks when one ends badly.

Whatever else pytest runs at the same time, one of these tests runs at a time: each starts several
processes. None depends on how fast they are.
"""

import os
import time
from pathlib import Path

import pytest

from gnnc.runtime.ranks.started import TRANSPORTS

from .launching import launched, one_at_a_time  # noqa: F401

pytest.importorskip("mpi4py")


def gone(process: int) -> bool:
    """Whether it has ended, though perhaps nobody has asked how."""
    try:
        return ") Z " in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return True


by_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@by_transport
def test_exchanges_and_collectives(tmp_path: Path, transport: str):
    result = launched(
        tmp_path,
        3,
        """
        assert sys.argv[1:] == ["-n", "x y"] and sys.stdin.read() == ""
        rng = np.random.default_rng(0)
        counts = rng.integers(0, 5, (3, 3))
        counts[1], counts[2, 0], counts[0, 1] = 0, 0, 600_000  # several pieces
        rows = [[rng.random((n, 3)) for n in line] for line in counts]
        into = [np.full((counts[:, rank].sum(), 3), np.nan) for _ in range(2)]
        under_way = [
            c.start(np.concatenate(rows[rank]), counts[rank], x, counts[:, rank], tag)
            for tag, x in enumerate(into)
        ]
        for exchange in reversed(under_way):
            exchange.wait()
            assert exchange.poll()
        for x in into:
            assert np.array_equal(x, np.concatenate([line[rank] for line in rows]))
        parts = rng.standard_normal((3, 1000)).astype("f4") * 10 ** rng.integers(0, 9, (3, 1000))
        expected = parts[0] + parts[1] + parts[2]
        assert c.all_reduce(parts[rank], "sum").tobytes() == expected.tobytes()
        assert c.all_reduce(np.array(rank), "max") == 2
        assert c.broadcast(str(rank), root=1) == "1"
        assert c.gather(rank) == ([0, 1, 2] if rank == 0 else None)
        c.agree("the program", "a")
        print(f"{rank} of {size}, {os.environ['OMP_NUM_THREADS']} threads")
        if rank == 1:
            sys.exit(0)
        """,
        "-n",
        "x y",
        options=("--threads", "1", "--transport", transport),
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "0 of 3, 1 threads\n"


@pytest.mark.parametrize(
    ("end", "texts"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", ["was killed by signal 9"]),
        ("os._exit(0)", ["ended by itself, with status 0"]),
        ("sys.exit(3)", ["the script ended with status 3"]),
        ("raise KeyError('rows')", ["script.py", "KeyError: 'rows'"]),
    ],
)
def test_a_rank_that_ends_stops_all(tmp_path: Path, end: str, texts: list[str]):
    begun = time.monotonic()
    result = launched(
        tmp_path,
        2,
        f"""
        with open(sys.argv[1] + f"/{{rank}}", "w") as file:
            file.write(str(os.getpid()))
        print("rank", rank, "prints")
        c.barrier()
        with c.stage("halo of layer 2"):
            if rank == 1:
                {end}
            c.barrier()
        """,
        str(tmp_path),
    )
    assert result.returncode == 1
    assert time.monotonic() - begun < 30
    assert result.stdout == "rank 0 prints\n"
    for text in ['rank 1 failed in stage "halo of layer 2":', "rank 1 prints", *texts]:
        assert text in result.stderr
    assert "rank 0 failed" not in result.stderr
    deadline = time.monotonic() + 5
    processes = [int((tmp_path / str(r)).read_text()) for r in range(2)]
    while not all(map(gone, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(gone, processes))


def test_a_stuck_rank_is_named_with_where_it_is(tmp_path: Path):
    result = launched(
        tmp_path,
        3,
        """
        def endless():
            while True:
                pass

        with c.stage("epoch 3"):
            if rank == 1:
                endless()
            c.barrier()
        """,
        options=("--patience", "2"),
    )
    assert result.returncode == 1
    assert "rank 1 is stuck: it made no progress for" in result.stderr
    assert 'rank 1 was in stage "epoch 3", and there' in result.stderr
    assert "in endless" in result.stderr


def test_a_stopped_rank_does_not_stay(tmp_path: Path):
    body = """
        with open(sys.argv[1] + f"/{rank}", "w") as file:
            file.write(str(os.getpid()))
        if rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        c.barrier()
        """
    result = launched(tmp_path, 2, body, str(tmp_path), options=("--patience", "2"))
    assert result.returncode == 1
    assert "rank 1 is stuck" in result.stderr
    time.sleep(0.2)
    assert gone(int((tmp_path / "1").read_text()))


def test_another_version_on_a_rank(tmp_path: Path):
    result = launched(
        tmp_path, 3, 'c.agree("the version of gnnc", "0.2" if rank == 1 else gnnc.__version__)'
    )
    assert result.returncode == 1
    text = "ranks differ in the version of gnnc: rank 1 from ranks 0 and 2"
    assert result.stderr.count(text) >= 1


@by_transport
def test_messages_of_another_length(tmp_path: Path, transport: str):
    body = 'c.all_reduce(np.zeros(3 + rank), "sum")'
    result = launched(tmp_path, 2, body, options=("--transport", transport))
    assert result.returncode == 1
    assert "ValueError: all-reduce (sum): " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-n", "0", __file__], "ranks must be at least 1, got 0"),
        (["-n", "2", "--threads", "0", __file__], "threads must be at least 1, got 0"),
        (["-n", "2", "--patience", "0", __file__], "patience must be a number of seconds above 0"),
        (["-n", "2", "nowhere.py"], "there is no script nowhere.py"),
    ],
)
def test_what_cannot_be_launched(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
):
    from gnnc.frontend.cli import main

    assert main(["launch", *arguments]) == 2
    assert text in capsys.readouterr().err


def test_shares_of_cores(monkeypatch: pytest.MonkeyPatch):
    from gnnc.runtime.ranks.launch import shares

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4, 5, 6})
    assert shares(2, None) == (2, "0,1;4,5")
    assert shares(2, 1) == (1, "0;1")
    assert shares(6, None) == (1, "")
    assert shares(2, 3) == (3, "")


def test_without_mpi4py(monkeypatch: pytest.MonkeyPatch):
    from gnnc.runtime.ranks import launch

    monkeypatch.setattr(launch, "find_spec", lambda _: None)
    with pytest.raises(launch.CannotLaunch, match=r'no mpi4py: pip install "gnnc\[mpi\]"'):
        launch.mpiexec()
