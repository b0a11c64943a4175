"""A folder of results keeps what every part wrote last, as JSON and as one document."""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gnnc.bench import command, race_figure
from gnnc.bench.command import PARTS, Part, run_part
from gnnc.bench.record import record, render
from gnnc.frontend.tools.children import ChildFailed, Message

MACHINE = {
    "processor": "A Processor",
    **{"cores": 2, "memory": "8 kB", "system": "an OS", "compiler": "a compiler"},
    "packages": {"torch": "2.0", "dgl": None},
}


def part(name: str, results: Sequence[Message], **more: object) -> Part:
    def measure(args: argparse.Namespace) -> Iterator[Message]:
        yield from results

    def report(result: Message, *, markdown: bool = False) -> str:
        return f"{'| ' if markdown else ''}{name} {result['value']}"

    usual = {"key": f"{name}s", "heading": name.title(), "help": "", "measure": measure}
    return Part(name=name, add_arguments=lambda _: None, report=report, **{**usual, **more})


def arguments(**given: str) -> argparse.Namespace:
    nothing = dict.fromkeys(("json", "markdown", "plot", "record"))
    return argparse.Namespace(**{**nothing, **given})


def test_parts_share_a_folder(tmp_path: Path):
    def plot(result: Message, folder: Path) -> str | None:
        (folder / "one.svg").write_text(str(result["value"]))
        return "one.svg"

    one, two = part("one", [], plot=plot), part("two", [])
    for of, value, graph, machine in (
        (two, 2, "large", MACHINE),
        (one, 0, "small", MACHINE),
        (two, 3, "small", MACHINE),
        (one, 1, "small", {**MACHINE, "cores": 4}),  # replaces what there was
    ):
        record(tmp_path, of, (one, two), [{"value": value, "graph": graph}], machine)
    data = json.loads((tmp_path / "results.json").read_text())
    assert {k: [e["result"]["value"] for e in found] for k, found in data.items()} == {
        "ones": [1],
        "twos": [2, 3],
    }
    text = (tmp_path / "README.md").read_text()
    assert text == render(data, (one, two))
    wanted = ["1. A Processor, 4 cores", "2. A Processor, 2 cores"]
    wanted += ["## One", "| one 1", "one.svg", "machine 1", "## Two", "| two 2", "machine 2"]
    wanted += ["| two 3", "machine 2\n"]
    places = [text.index(w) for w in wanted[:-1]] + [text.rindex(wanted[-1])]
    assert places == sorted(places)
    assert "dgl" not in text
    assert (tmp_path / "one.svg").read_text() == "1"


def test_all_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = part("one", [{"value": 1}])
    bad = part("bad", [{"value": 2}], failed=lambda _: True)
    monkeypatch.setattr(command, "PARTS", (one, bad))
    assert command.run_all(argparse.Namespace(record=str(tmp_path))) == 1
    assert set(json.loads((tmp_path / "results.json").read_text())) == {"ones", "bads"}


def test_run_part_writes_what_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    one = part("one", [{"value": 1}, {"value": 2}], failed=lambda results: len(results) > 1)
    files = {"json": str(tmp_path / "a.json"), "markdown": str(tmp_path / "a.md")}
    assert run_part(one, arguments(**files)) == 1
    assert capsys.readouterr().out == "one 1\n\none 2\n\n"
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["ones"] == [{"value": 1}, {"value": 2}]
    assert found["machine"]["cores"] > 0
    assert (tmp_path / "a.md").read_text() == "| one 1\n\n| one 2\n"


def test_run_part_tells_of_failure(capsys: pytest.CaptureFixture[str]):
    def measure(args: argparse.Namespace) -> Iterator[Message]:
        raise ChildFailed("ended with status 7")
        yield {}

    assert run_part(part("one", [], measure=measure), arguments()) == 1
    assert capsys.readouterr().err == "gnnc bench one: ended with status 7\n"


def test_command_line(monkeypatch: pytest.MonkeyPatch):
    called: list[tuple[str, argparse.Namespace]] = []

    def run_part(part: Part, args: argparse.Namespace) -> int:
        called.append((part.name, args))
        return 0

    monkeypatch.setattr(command, "run_part", run_part)
    for words in (
        ["--models", "gcn", "gin", "--graphs", "tiny", "--json"],
        ["race", "--graphs", "small", "--record", "folder"],
        ["kernels", "--model", "sage", "--graph", "tiny", "--epochs", "7"],
        ["all"],
    ):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        parser.set_defaults(run=command.run)
        args = parser.parse_args(words)
        args.run(args)
    (bare, first), (race, second), (kernels, third), *every = called
    assert (bare, race, kernels) == ("race", "race", "kernels")
    assert (first.models, first.graphs, first.json) == (["gcn", "gin"], ["tiny"], "-")
    assert (second.graphs, second.record) == (["small"], "folder")
    assert [(name, args.record) for name, args in every] == [
        (part.name, "docs/results") for part in PARTS if part.measured
    ]
    assert (third.model, third.graph, third.epochs) == ("sage", "tiny", 7)


def test_parts_have_their_own_names():
    assert len({p.name for p in PARTS}) == len({p.key for p in PARTS}) == len(PARTS)


def test_plot_of_a_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("matplotlib")
    results: dict[str, Message] = {
        "gnnc": {"median_seconds": 0.05},
        "pyg": {"median_seconds": 1.15},
        "dgl": {"error": "no", "out_of_memory": True},
    }
    races = [{"model": model, "graph": "tiny", "results": results} for model in ("gcn", "gin")]
    file = tmp_path / "out.svg"
    drawn = part("race", [{"value": 1, **r} for r in races], draw=race_figure.draw)
    monkeypatch.setitem(matplotlib_settings(), "svg.fonttype", "none")  # text stays text
    assert run_part(drawn, arguments(plot=str(file))) == 0
    text = file.read_text()
    for label in ("gcn on tiny", "gin on tiny", "median epoch (s)", "1.15 s (23.00 x gnnc)"):
        assert label in text
    assert "out of memory" in text


def matplotlib_settings() -> dict[str, object]:
    from matplotlib import rcParams

    return rcParams


def test_plot_is_refused_before_anything_is_measured(capsys: pytest.CaptureFixture[str]):
    def measure(args: argparse.Namespace) -> Iterator[Message]:
        raise AssertionError
        yield {}

    drawn = part("race", [], measure=measure, draw=race_figure.draw)
    assert run_part(drawn, arguments(plot="out.jgp")) == 1
    assert "--plot: out.jgp should end in one of ." in capsys.readouterr().err


def test_parts_that_draw():
    assert [p.name for p in PARTS if p.draw is not None] == ["race", "scaling", "pipeline"]
