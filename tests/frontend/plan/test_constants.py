"""The file of constants, and what is none."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gnnc.frontend.plan.constants import BadConstants, Constants, load, save


def test_a_file_has_what_was_saved(tmp_path: Path):
    found = replace(Constants(), alpha=1e-6, overlap=0.5)
    save(tmp_path / "c.json", found, {"cores": 2})
    assert load(tmp_path / "c.json") == found
    assert json.loads((tmp_path / "c.json").read_text())["machine"] == {"cores": 2}


def test_what_is_left_out_has_its_default(tmp_path: Path):
    write(tmp_path / "c.json", {"alpha": 1})
    assert load(tmp_path / "c.json") == replace(Constants(), alpha=1.0)


def test_a_save_that_fails_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save(tmp_path / "c.json", Constants(), {})

    def full(descriptor: int) -> None:
        raise OSError("No space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path / "c.json", replace(Constants(), alpha=1.0), {})
    assert load(tmp_path / "c.json") == Constants()
    assert [f.name for f in tmp_path.iterdir()] == ["c.json"]


def write(path: Path, constants: object, **more: object) -> None:
    whole = {"format": "constants of gnnc plan", "version": 1, "constants": constants}
    path.write_text(json.dumps({**whole, **more}))


@pytest.mark.parametrize(
    ("constants", "more", "text"),
    [
        ({"alfa": 1}, {}, "alfa is no constant, they are alpha, "),
        ({"alpha": "1"}, {}, "alpha: '1' is no number"),
        ({"alpha": True}, {}, "alpha: True is no number"),
        ({"alpha": -1}, {}, "alpha: -1"),
        ({"bandwidth": 0}, {}, "bandwidth: 0.0, and it should be above 0"),
        ({"overlap": 2}, {}, "overlap: 2"),
        ([], {}, "has no constants of gnnc plan"),
        ({}, {"format": "x"}, "has no constants of gnnc plan"),
        ({}, {"version": 2}, "has version 2, this gnnc reads 1"),
    ],
)
def test_refused_files(constants: object, more: dict[str, object], text: str, tmp_path: Path):
    write(tmp_path / "c.json", constants, **more)
    with pytest.raises(BadConstants, match="c.json.*" + text):
        load(tmp_path / "c.json")


def test_refused_text(tmp_path: Path):
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(BadConstants, match="c.json has no constants"):
        load(tmp_path / "c.json")


def test_rows_come_from_caches_or_from_memory():
    found = replace(Constants(), edge_number=1.0, far_number=5.0, cache_bytes=100.0)
    assert found.gathered(0.0) == found.gathered(100.0) == 1
    assert found.gathered(200.0) == 3
    assert found.gathered(1e15) == pytest.approx(5)


def test_ranks_that_all_work_share_cores_and_caches():
    of_one = replace(Constants(), shared=2.0, shared_caches=0.5, fixed=7.0)
    assert of_one.among(1) == of_one
    of_two = of_one.among(2)
    assert of_two.cache_bytes == of_one.cache_bytes / 2
    assert of_two.score == 2 * of_one.score and of_two.multiply_add == 2 * of_one.multiply_add
    assert of_two.fixed == of_one.fixed  # as of a rank of two it was measured
    assert of_two.among(2) == of_two


@pytest.mark.parametrize("name", ["overlap", "shared_caches"])
def test_shares_are_at_most_one(name: str):
    assert replace(Constants(), **{name: 1.0})
    with pytest.raises(BadConstants, match=f"^{name}: 1.5, and it is a share"):
        replace(Constants(), **{name: 1.5})


@pytest.mark.parametrize("name", asdict(Constants()))
def test_no_constant_is_infinite(name: str):
    with pytest.raises(BadConstants, match=f"^{name}: inf"):
        replace(Constants(), **{name: float("inf")})
