"""bench/gpu.py without a GPU: that it says so; what a run keeps, skips and tries again, with a
child that fails in every way; and its parts themselves on the CPU and tiny graphs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from gnnc.bench import gpu, gpu_child, gpu_plan, gpu_report, roofline_child
from gnnc.bench.gpu import Run
from gnnc.bench.gpu_models import CHECKS
from gnnc.bench.gpu_plan import Part
from gnnc.frontend.tools.children import Message

FAKE = "gnnc.tests.bench.fake_gpu_child"


def plan(*names: str, seconds: float = 20) -> list[Part]:
    return [Part(name, seconds, {"do": name}) for name in names]


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAKE_GPU_LOG", str(tmp_path / "log"))
    return tmp_path / "results.json"


def asked(out: Path) -> list[str]:
    """What the children were asked, in order."""
    log = out.with_name("log")
    return [line.split(" ", 1)[1] for line in log.read_text().splitlines()] if log.exists() else []


def parts_of(out: Path) -> Message:
    return json.loads(out.read_text())["parts"]


def test_without_a_gpu(tmp_path: Path):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    command = [sys.executable, "-m", "gnnc.bench.gpu", "--out", str(tmp_path / "results.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("gnnc.bench.gpu: no NVIDIA GPU here: torch ")
    assert list(tmp_path.iterdir()) == []


def test_without_torch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "cannot be imported" in str(gpu.no_gpu())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--parts", "check-gnn"], "there is no part check-gnn"),
        (["--out", "nowhere/results.json"], "has no folder nowhere"),
    ],
)
def test_bad_arguments(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit):
        gpu.main(["--out", str(tmp_path / "results.json"), *arguments])
    assert message in capsys.readouterr().err


def test_failures_are_kept_and_the_others_go_on(out: Path):
    chosen = plan("one", "fails", "two", "dies", "three", "is wrong")
    assert Run(out, "cpu", child=FAKE).run(chosen) == 1
    found = parts_of(out)
    assert list(found) == [p.name for p in chosen]
    assert [n for n, p in found.items() if "error" in p] == ["fails", "dies"]
    assert found["fails"]["error"] == "CUDA error: an illegal memory access"
    assert "status 3" in found["dies"]["error"]
    assert found["three"]["result"] == {"value": "three"}
    # a child that failed is not asked again
    children = [line.split()[0] for line in out.with_name("log").read_text().splitlines()]
    assert children[0] == children[1] != children[2] == children[3] != children[4] == children[5]


def test_a_part_that_takes_too_long(out: Path):
    chosen = [*plan("sleeps", seconds=2), *plan("two")]
    assert Run(out, "cpu", child=FAKE).run(chosen) == 1
    found = parts_of(out)
    assert found["sleeps"]["error"] == "took longer than 2 s"
    assert found["two"]["result"] == {"value": "two"}


def test_what_is_there_is_not_run_again(out: Path):
    assert Run(out, "cpu", child=FAKE).run(plan("one", "fails")) == 1
    assert Run(out, "cpu", child=FAKE).run(plan("one", "fails", "two")) == 1
    assert asked(out) == ["one cpu", "fails cpu", "two cpu"]
    assert Run(out, "cpu", retry=True, child=FAKE).run(plan("one", "fails", "two")) == 1
    assert asked(out)[3:] == ["fails cpu"]
    assert Run(out, "cpu", child=FAKE).run(plan("one", "two")) == 0


def test_what_no_time_is_left_for(out: Path, capsys: pytest.CaptureFixture[str]):
    chosen = [*plan("long", seconds=100), *plan("one")]
    assert Run(out, "cpu", seconds=50, child=FAKE).run(chosen) == 0
    assert list(parts_of(out)) == ["one"]
    assert "no time is left for long: run the same again" in capsys.readouterr().out


def test_results_of_another_gpu(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(gpu, "no_gpu", lambda: None)
    monkeypatch.setattr(gpu, "device_name", lambda: "a small GPU")
    out.write_text(json.dumps({"parts": {"device": {"result": {"device": "a large GPU"}}}}))
    with pytest.raises(SystemExit):
        gpu.main(["--out", str(out)])
    assert "has results of a large GPU, and this is a small GPU" in capsys.readouterr().err
    out.write_text("half of ")
    with pytest.raises(SystemExit):
        gpu.main(["--out", str(out)])
    assert "results.json: Expecting value" in capsys.readouterr().err


def test_a_run_ends_in_time():
    assert gpu.SECONDS < 8 * 60
    assert all(p.seconds < gpu.SECONDS for p in gpu_plan.parts())


def test_the_plan_fits_the_child():
    assert {p.question["do"] for p in gpu_plan.parts()} == set(gpu_child.PARTS)
    assert gpu_plan.MODELS == tuple(CHECKS)
    names = [p.name for p in gpu_plan.parts()]
    assert len(names) == len(set(names))


# ---------------------------------------------------------------- the parts on the CPU

CPU = {"device": "cpu"}


def done(**question: object) -> Message:
    answer = gpu_child.work({**question, **CPU})
    assert "error" not in answer, answer
    return answer["result"]


@pytest.mark.parametrize(
    "model", [m if m == "gcn" else pytest.param(m, marks=pytest.mark.long) for m in CHECKS]
)
def test_check(model: str):
    found = done(do="check", model=model)
    assert found["good"], found
    assert found["numbers"] > 1000


def test_a_check_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch):
    class Told:
        fallbacks: list[str] = []

    def compile(model: nn.Module) -> nn.Module:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.01)
        return model

    monkeypatch.setattr(gpu_child.gnnc, "compile", compile)
    monkeypatch.setattr(gpu_child.gnnc, "explain", lambda _: Told)
    found = done(do="check", model="gcn")
    assert not found["close"] and not found["good"]


def test_a_check_asks_that_the_model_is_compiled(monkeypatch: pytest.MonkeyPatch):
    class Told:
        fallbacks = ["all of it: no rule"]

    monkeypatch.setattr(gpu_child.gnnc, "compile", lambda model: model)
    monkeypatch.setattr(gpu_child.gnnc, "explain", lambda _: Told)
    found = done(do="check", model="gcn")
    assert found["close"] and not found["good"]
    text = gpu_report.document({"parts": {"check-gcn": {"result": found}}})
    assert "not compiled" in text and "gcn runs in torch: all of it: no rule" in text


def test_what_is_no_number_is_different():
    assert gpu_child.difference(torch.tensor([1.0, float("nan")]), torch.ones(2)) == float("inf")
    assert gpu_child.difference(torch.tensor([2.0, 4.0]), torch.tensor([2.0, 5.0])) == 0.2
    assert gpu_child.difference(torch.zeros(2), torch.zeros(2)) == 0
    assert gpu_child.difference(torch.tensor([1e-3]), torch.zeros(1), least=0.5) == pytest.approx(
        2e-3
    )


@pytest.fixture(scope="module")
def results() -> Message:
    """Parts on a tiny graph; contestants that take long to compile fail instead."""
    broken = pytest.MonkeyPatch()

    def refuse(*_: object) -> object:
        raise RuntimeError("no backend here")

    contestants = {**gpu_child.CONTESTANTS, "pyg-compiled": refuse}
    broken.setattr(gpu_child, "CONTESTANTS", contestants)
    kernel = {"accesses": [[1e6, 4, 1e6, False]], "handed_on": 5e5, "reread": 0.0}
    kernel |= {"operations": 0.0, "launches": 1, "blocks": 132}
    broken.setattr(roofline_child, "kernels", lambda *_: {"kernels": [kernel, kernel]})
    tiny = {"graph": "tiny"}
    parts = {
        "device": done(do="facts"),
        "check-gcn": done(do="check", model="gcn"),
        "copy": done(do="copy"),
        "epochs-gcn-tiny": done(do="epochs", model="gcn", **tiny),
        "aggregation-tiny": done(do="aggregation", **tiny),
        "memcheck": done(do="sanitizer", tool="memcheck", seconds=5),
        "count-gcn-tiny": done(do="count", model="gcn", **tiny),
    }
    broken.undo()
    found: Message = {"parts": {name: {"result": one} for name, one in parts.items()}}
    found["parts"]["check-gin"] = {"error": "took longer than 60 s", "out_of_memory": False}
    return found


def test_epochs(results: Message):
    found = results["parts"]["epochs-gcn-tiny"]["result"]["results"]
    assert list(found) == ["gnnc", "gnnc-train", "pyg", "pyg-compiled"]
    for name in ("gnnc", "gnnc-train", "pyg"):
        assert len(found[name]["seconds"]) == gpu_child.ROUNDS * gpu_child.EPOCHS
        assert min(found[name]["seconds"]) <= found[name]["median_seconds"]
        assert found[name]["loss"] == pytest.approx(found["pyg"]["loss"], rel=1e-4)
    assert found["gnnc"]["in_torch"] == []
    assert found["pyg-compiled"]["error"].startswith("RuntimeError: no backend here")


def test_who_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> object:
        raise RuntimeError("no backend here")

    monkeypatch.setattr(gpu_child, "CONTESTANTS", dict.fromkeys(gpu_child.CONTESTANTS, refuse))
    found = done(do="epochs", model="rgcn", graph="tiny-relations")
    assert list(found["results"]) == ["gnnc", "gnnc-train", "pyg"]
    text = gpu_report.document({"parts": {"epochs-rgcn-tiny": {"result": found}}})
    assert "No such model of pyg-compiled (torch.compile unrolls" in text


def test_aggregation(results: Message):
    found = results["parts"]["aggregation-tiny"]["result"]
    assert [w["width"] for w in found["widths"]] == [32, 128]
    for width in found["widths"]:
        assert set(width["seconds"]) == {"gnnc", "pyg", "torch.sparse.mm"}
        assert all(d < 1e-5 for d in width["differences"].values())
        numbers = 4 * width["width"]
        assert width["moved"] == 7000 * (numbers + 4) + 1000 * numbers + 1001 * 8


def test_document(results: Message):
    text = gpu_report.document(results)
    lines = text.splitlines()
    assert any(line.startswith("| gcn ") and line.endswith(" good |") for line in lines)
    assert "memcheck was not run: compute-sanitizer is neither on PATH nor" in text
    assert "## gcn on tiny" in text and "| gnnc-train " in text
    assert any(line.startswith("| pyg-compiled | ") and "failed" in line for line in lines)
    assert "gnnc's kernels move 3 MB a step; predicted: a100 " in text
    assert "of the copy bandwidth" in text
    assert len([line for line in lines if "torch.sparse.mm |" in line]) == 2
    assert "- check-gin: took longer than 60 s" in text
    assert "Not run: check-sage-mean, " in text


def test_picture(results: Message, tmp_path: Path):
    pytest.importorskip("matplotlib")
    gpu_report.draw(results, tmp_path / "out.svg")
    assert (tmp_path / "out.svg").read_text().rstrip().endswith("</svg>")


def test_an_empty_document():
    text = gpu_report.document({"parts": {}})
    assert text.startswith("# gnnc on a GPU") and "Not run: device, check-gcn, " in text


def test_compute_sanitizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program in its place that says what it was asked, and fails as it does."""
    program = tmp_path / "compute-sanitizer"
    program.write_text('#!/bin/sh\necho "$@"\necho "========= ERROR SUMMARY: 1 error"\nexit 9\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = gpu_child.sanitizer(gpu_child.DEVICES["cuda"](), "racecheck", 5)
    assert not found["good"] and found["summary"] == ["========= ERROR SUMMARY: 1 error"]
    assert found["output"][0].startswith("--tool racecheck --error-exitcode 9 ")
    assert found["output"][0].endswith(" -m gnnc.bench.gpu_child small")
    text = gpu_report.document({"parts": {"racecheck": {"result": found}}})
    assert "racecheck on gcn, sage-max, gat, rgcn: ERRORS (========= ERROR SUMMARY" in text
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    with pytest.raises(TimeoutError, match="racecheck took longer than 1 s"):
        gpu_child.sanitizer(gpu_child.DEVICES["cuda"](), "racecheck", 1)
