"""What `gnnc train` shows of trainings: while they run, as a table, as a figure."""

import io
from pathlib import Path
from typing import Any

import pytest

from gnnc.frontend.tools import comparison_table, live, training_figure
from gnnc.frontend.tools import progress as shown_progress
from gnnc.frontend.tools.history import Evaluation, History, warm_seconds


def progress(epoch: int, accuracies: list[float] | None = None) -> dict[str, Any]:
    numbers = {"epoch": epoch, "loss": 1 / epoch, "epoch_seconds": 0.0123, "memory": 45 << 20}
    return {**numbers, "accuracies": accuracies}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_few(monkeypatch: pytest.MonkeyPatch):
    clock = iter([0.0, 4.9, 5.0, 9.9, 10.1, 10.2])
    monkeypatch.setattr(shown_progress.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    with live.shown("eager seed 0", 9, stream) as tell:
        for epoch in (1, 2, 5, 6):
            tell(progress(epoch))
        tell(progress(9, [1, 0.8, 0.75]))
    assert stream.getvalue().splitlines() == [
        "eager seed 0: epoch 2/9, loss 0.5000, 12.3 ms/epoch, 45 MiB",
        "eager seed 0: epoch 6/9, loss 0.1667, 12.3 ms/epoch, 45 MiB",
        "eager seed 0: epoch 9/9, loss 0.1111, 12.3 ms/epoch, "
        "accuracy train 1.000 val 0.800 test 0.750, 45 MiB",
    ]


def test_a_terminal_has_one_line():
    stream = Terminal()
    with live.shown("eager seed 0", 9, stream) as tell:
        tell(progress(4))
        tell(progress(5, [1, 0.8, 0.75]))
    shown = stream.getvalue()
    assert "\n" not in shown
    assert "eager seed 0 4/9" in shown
    assert "eager seed 0 5/9" in shown
    assert "loss 0.2000, 12.3 ms/epoch, accuracy train 1.000 val 0.800 test 0.750" in shown
    assert shown.rstrip("\r").endswith(" ")  # it is wiped out at the end


def test_a_terminal_has_lines_where_tqdm_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shown_progress, "find_spec", lambda name: None)
    stream = Terminal()
    with shown_progress.counted("training", "batch", 2, stream) as count:
        count(1, "")
        count(2, "")
    assert stream.getvalue() == "training: batch 2/2\n"


def history(*losses: float, starts: tuple[int, ...] = (0,)) -> History:
    last = Evaluation(len(losses), 1.0, 0.8, 0.7)
    seconds = [1.0, *[0.1] * (len(losses) - 1)]
    return History(list(losses), seconds, [Evaluation(1, 0.4, 0.3, 0.2), last], list(starts))


def test_history():
    found = history(3, 2, 1)
    found.saw_memory(5, True)
    found.saw_memory(3, False)
    assert (found.memory, found.memory_exact) == (5, False)
    assert found.epochs == 3
    assert found.median_seconds == pytest.approx(0.1)
    assert found.accuracy == 0.7
    assert History.of(found.as_message()) == found


def test_epochs_that_compile_do_not_count():
    assert warm_seconds([9, 1, 2, 8, 3], [0, 3]) == [1, 2, 3]
    assert warm_seconds([9], [0]) == [9]


def results(*ways: str) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "accuracies": [0.5, 0.75],
        "epoch_seconds": 0.01,
        "first_epoch_seconds": 1.0,
        "memory": 3 << 20,
        "memory_exact": True,
        "histories": [history(3, 2, 1).as_message(), history(4, 2, 0.5).as_message()],
    }
    compiled = {"compile_seconds": 0.5, "kernels": ["a", "b"], "fallbacks": ["a loop"]}
    graph = {"name": "default", "nodes": 60, "edges": 90, "features": 9, "classes": 3}
    settings = {"model": "gcn", "layers": 2, "hidden": 4, "seeds": 2, "epochs": 3, "mode": "step"}
    found = {"settings": settings, "graph": graph}
    return found | {way: summary | (compiled if way == "compiled" else {}) for way in ways}


def test_table_of_both():
    text = comparison_table.report(results("eager", "compiled"))
    lines = {line[:24].strip(): line[24:].split() for line in text.splitlines()[2:]}
    assert text.splitlines()[0].endswith("3 epochs; compiled: gnnc.train_step")
    assert lines["epoch, median"] == ["10.0", "ms", "10.0", "ms", "1.00", "x"]
    assert lines["compile time"] == ["500.0", "ms"]
    assert lines["kernels"] == ["2"]
    assert text.splitlines()[-1] == "left to torch: a loop"


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_table_of_one(way: str):
    text = comparison_table.report(results(way))
    assert "62.5% ± 12.5%" in text
    assert "eager / compiled" not in text
    assert ("compile time" in text) == (way == "compiled")


@pytest.mark.parametrize("ways", [("eager", "compiled"), ("eager",)])
def test_figure(ways: tuple[str, ...], tmp_path: Path):
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text
        training_figure.draw(results(*ways), tmp_path / "out.svg")
    text = (tmp_path / "out.svg").read_text()
    for label in ("training loss (cross entropy)", "accuracy (share of nodes)", "epoch"):
        assert label in text
    assert "training time (s), compilation included, evaluation not" in text
    assert "gcn, 2 layers of 4, on default (60 nodes, 90 edges), mean and range of 2 seeds" in text
    for way in ("eager", "compiled"):
        assert (f"{way}, validation" in text) == (way in ways)
