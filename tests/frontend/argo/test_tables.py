"""Trials as files, text and pictures."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from gnnc.frontend.argo.configurations import Configuration
from gnnc.frontend.argo.tables import BadTable, draw, load, save, text
from gnnc.frontend.argo.tuner import Measured, Trials

TRIALS = Trials(
    {
        Configuration(1, 1, 7): Measured(0.5, 0.01, 20.0),
        Configuration(8, 0, 1): Measured(math.inf, 0.0, 3.0),
        Configuration(2, 1, 3): Measured(0.3, 0.01, 14.0),
    }
)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    save(tmp_path / "trials.json", TRIALS, 8)
    found = load(tmp_path / "trials.json", 8)
    assert list(found.measured.items()) == list(TRIALS.measured.items())
    assert (found.best, found.default) == (Configuration(2, 1, 3), Configuration(1, 1, 7))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cores": 4}, "of 4 cores, and here are 8"),
        ({"version": 2}, "of version 1"),
        ({"trials": []}, "damaged"),
        ({"trials": [{"processes": 1}]}, "damaged"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = tmp_path / "trials.json"
    save(path, TRIALS, 8)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BadTable, match=said):
        load(path, 8)


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{")
    with pytest.raises(BadTable, match="no table of trials"):
        load(tmp_path / "x", 8)


def test_the_text_says_which_is_best() -> None:
    lines = text(TRIALS).splitlines()
    assert len(lines) == 5
    assert lines[2].endswith("default")
    assert "does not run" in lines[3]
    assert lines[4].endswith("best")


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(TRIALS, tmp_path / "trials.svg")
    drawn = (tmp_path / "trials.svg").read_text()
    assert drawn.rstrip().endswith("</svg>")
