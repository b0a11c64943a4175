import subprocess
import sys

import pytest

import gnnc
from gnnc.frontend.morph.plan import Split, Times
from gnnc.frontend.morph.report import draw, report
from gnnc.frontend.morph.scheduler import Scheduler
from gnnc.frontend.morph.trace import Trace


def played(split: Split):
    scheduler = Scheduler(Times(2.0, 0.5, 1.0, 1.0, 2))
    return scheduler.simulate(scheduler.schedule(split))


def test_busy_shares_and_blocked_times():
    # Both workers finish at 2, the link moves until 2.5 and 3, the steps end at 3.5 and 4.5.
    text = report(played(Split(2, 0)))
    assert "2 batches in 4.500 s, 2 CPU workers" in text
    assert "cpu          busy  44.4%" in text
    assert "link         busy  22.2%" in text
    assert "blocked 2.000 s: no batch from the CPU" in text
    assert "accelerator  busy  44.4%" in text
    assert "blocked 2.500 s: no batch ready to train" in text


def test_a_side_alone_does_not_wait():
    text = report(played(Split(0, 3)))
    assert "accelerator  busy 100.0%" in text
    assert "no batch" not in text


def test_a_timeline_shows_the_lanes_of_the_first_steps(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "timeline.svg"
    draw(played(Split(6, 6)), path, steps=5)
    text = path.read_text()
    for word in ("CPU 0", "CPU 1", "link", "accelerator", "prepare", "move", "train"):
        assert f"<!-- {word} -->" in text
    with pytest.raises(ValueError, match="steps"):
        draw(played(Split(1, 1)), path, steps=0)


def test_a_timeline_may_be_a_png(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "timeline.png"
    draw(played(Split(2, 2)), path, steps=2)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_error_of_the_prediction():
    trace = played(Split(2, 0))
    assert "predicted 4.500 s (+0.0%)" in report(trace, trace)
    assert "predicted 3.600 s (-20.0%)" in report(trace, Trace((), 3.6, 2))
    assert "predicted" not in report(trace)


def test_the_package_is_a_module_and_needs_no_torch():
    assert gnnc.morph.Scheduler is Scheduler
    code = (
        "import sys, gnnc.morph, gnnc.frontend.morph as home; from gnnc.morph import Executor\n"
        "assert Executor is home.Executor and gnnc.morph.__all__ == home.__all__\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
