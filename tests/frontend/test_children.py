"""Children answer, are ended, and their failures are told; their memory is measured."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gnnc.frontend.tools.children import Child, ChildFailed, OutOfMemory, Refused
from gnnc.frontend.tools.memory import Watermark, available, resident
from gnnc.frontend.tools.report import bytes_text, seconds_text, table

SMALL = {"contestant": "pyg", "model": "gcn", "graph": [30, 90, 4, 3], "hidden": 4, "layers": 2}


def test_child_answers_until_it_is_ended():
    with Child("gnnc.bench.contestant") as child:
        assert len(child.ask(SMALL)["seconds"]) == 2
        answer = child.ask({"epochs": 3})
        assert len(answer["seconds"]) == len(answer["losses"]) == 3
        assert answer["losses"][0] > answer["losses"][-1]


def test_failing_child(capfd: pytest.CaptureFixture[str]):
    with Child("gnnc.bench.contestant") as child:
        with pytest.raises(ChildFailed, match="gnnc.bench.contestant ended with status 1"):
            child.ask({**SMALL, "contestant": "nobody"})
        with pytest.raises(ChildFailed):
            child.ask({"epochs": 1})
    assert "KeyError: 'nobody'" in capfd.readouterr().err


def test_child_past_its_memory_limit():
    with Child("gnnc.bench.contestant", memory_limit=64 << 20) as child:  # less than torch takes
        with pytest.raises(OutOfMemory, match="took 0.1 GiB, its limit"):
            child.ask(SMALL)
        with pytest.raises(ChildFailed):
            child.ask({"epochs": 1})


def test_child_within_its_memory_limit():
    with Child("gnnc.bench.contestant", memory_limit=available()) as child:
        assert len(child.ask(SMALL)["seconds"]) == 2


@pytest.mark.parametrize("wrong", [{"graph": [9, 9, 10**15, 3]}, {"hidden": 10**14}])
def test_child_that_is_refused_memory(wrong: dict[str, object]):
    """By NumPy and by torch: more than an address can name."""
    with Child("gnnc.bench.contestant") as child, pytest.raises(OutOfMemory, match="allocate"):
        child.ask({**SMALL, **wrong})


def test_child_refuses_and_goes_on():
    with Child("gnnc.bench.contestant") as child:
        with pytest.raises(Refused, match="by hand"):
            child.ask({**SMALL, "contestant": "floor", "layers": 1})
        assert len(child.ask(SMALL)["seconds"]) == 2


TELLING = """
import time
from gnnc.frontend.tools.children import serve_with_progress

def work(question, tell):
    for number in range(question["count"]):
        tell({"number": number})
    if "wait" in question:
        time.sleep(question["wait"])
        tell({"number": -1})
        open(question["file"], "w").close()
    return {"done": True}

serve_with_progress(work)
"""


@pytest.fixture
def telling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "telling.py").write_text(TELLING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "telling"


@pytest.mark.parametrize("limit", [None, 8 << 30])
def test_progress_comes_before_the_answer(telling: str, limit: int | None):
    told: list[int] = []
    with Child(telling, memory_limit=limit) as child:
        answer = child.ask({"count": 5000}, lambda progress: told.append(progress["number"]))
        assert told == list(range(5000))
        assert answer == {"done": True}
        assert child.ask({"count": 3}) == {"done": True}  # nobody listens


def test_child_ends_without_its_parent(telling: str, tmp_path: Path):
    code = f"""
import os
from gnnc.frontend.tools.children import Child
with Child("{telling}") as child:
    def tell(progress):
        print(child.process, flush=True)
        os._exit(0)
    child.ask({{"count": 1, "wait": 0.3, "file": "{tmp_path / "written"}"}}, tell)
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    orphan = Path("/proc") / done.stdout.decode().strip()
    while orphan.exists():
        time.sleep(0.01)
    assert not (tmp_path / "written").exists()


def test_environment_of_a_child():
    with Child("gnnc.bench.contestant", environment={"GNNC_OF_A_TEST": "1"}) as child:
        child.ask(SMALL)  # before it has read its program, the system shows no environment
        found = Path(f"/proc/{child.process}/environ").read_bytes().split(b"\0")
    assert b"GNNC_OF_A_TEST=1" in found


def test_resident_memory():
    assert resident(os.getpid()) > 10 << 20
    with Child("gnnc.bench.contestant") as child:
        process = child.process
    assert resident(process) == 0


def test_watermark_sees_what_was_freed():
    mark = Watermark.set()
    if not mark.exact:
        pytest.skip("this kernel does not let a process reset its peak")
    block = np.ones(64 << 20, np.uint8)
    del block
    assert 60 << 20 < mark.above < 100 << 20
    assert Watermark.set().above < 30 << 20


def test_table():
    rows = [("", "time"), ("a", "1.0 ms"), ("long name", "10.0 ms")]
    assert table(rows) == "\n".join(
        [
            "              time",
            "---------  -------",
            "a           1.0 ms",
            "long name  10.0 ms",
        ]
    )
    assert table(rows, markdown=True).splitlines()[1] == "| --------- | ------: |"


def test_units():
    assert seconds_text(0.0123) == "12.3 ms"
    assert seconds_text(2) == "2.00 s"
    assert seconds_text(0.000123) == "123 µs"
    assert bytes_text(3 << 20) == "3 MiB"
    assert bytes_text(3 << 10) == "3 KiB"
