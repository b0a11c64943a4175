"""The driver: lists, errors with places, dumps, times, checks, reproducers, targets."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from gnnc.dialects.inter.pointwise import AddOp
from gnnc.frontend import gnn_opt
from gnnc.frontend.gnn_opt import main
from gnnc.passes import get_all_passes

PROGRAM = """\
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 3xf64>) -> !inter.rows<N, 3xf64> {
  %y = inter.relu %x : !inter.rows<N, 3xf64>
  %z = inter.add %y, %x : !inter.rows<N, 3xf64>
  func.return %z : !inter.rows<N, 3xf64>
}
"""


def adds(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, AddOp)]


@dataclass(frozen=True)
class Forget(ModulePass):
    """Takes every sum for its first term.

    Which is wrong."""

    name = "forget"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for add in adds(op):
            Rewriter.replace_op(add, [], [add.operands[0]])


@dataclass(frozen=True)
class Crash(ModulePass):
    """Fails."""

    name = "crash"
    depth: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise ZeroDivisionError("division by zero")


@pytest.fixture(autouse=True)
def more_passes(monkeypatch: pytest.MonkeyPatch):
    passes = {**get_all_passes(), "forget": lambda: Forget, "crash": lambda: Crash}
    monkeypatch.setattr(gnn_opt, "get_all_passes", lambda: passes)
    monkeypatch.delenv("GNNC_DUMP", raising=False)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


def test_prints_the_module(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(program)]) == 0
    assert "%y = inter.relu %x : !inter.rows<N, 3xf64>" in capsys.readouterr().out


def test_runs_passes(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(program), "-p", "verify-sets,forget"]) == 0
    out = capsys.readouterr().out
    assert "inter.relu" in out
    assert "inter.add" not in out


def test_help_lists_our_passes_with_their_summaries(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert "forget Takes every sum for its first term.".split() in lines
    for name in get_all_passes():
        (line,) = [words for words in lines if words[:1] == [name]]
        assert len(line) > 1
    assert any("canonicalize," in words for words in lines)
    assert any(words[:1] == ["openmp"] and len(words) > 1 for words in lines)


def test_version(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("gnn-opt 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "forgot"], "there is no pass `forgot`: did you mean `forget`?"),
        (["-p", "zzzzzz"], "there is no pass `zzzzzz`: gnn-opt --help lists them"),
        (["-p", "crash{deep=2}"], "pass `crash`: "),
        (["-p", "crash{"], "Error parsing pass pipeline"),
        (["missing.mlir"], "missing.mlir"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_parse_error(program: Path, capsys: pytest.CaptureFixture[str]):
    program.write_text(PROGRAM.replace("inter.relu", "inter.rely"))
    assert main([str(program)]) == 1
    err = capsys.readouterr().err
    assert f"{program}:2:" in err
    assert "inter.rely is not registered" in err


def test_error_of_a_type_says_where(program: Path, capsys: pytest.CaptureFixture[str]):
    wrong = PROGRAM.replace(
        "relu %x : !inter.rows<N, 3xf64>", "relu %x : !inter.rows<unit[a], f64>"
    )
    program.write_text(wrong)
    assert main([str(program)]) == 1
    assert f"error: {program}:2:" in capsys.readouterr().err


def test_verifier_error_says_where(program: Path, capsys: pytest.CaptureFixture[str]):
    wrong = PROGRAM.replace("relu %x : !inter.rows<N, 3xf64>", "relu %x : !inter.rows<N, 4xf64>")
    program.write_text(wrong.replace("add %y,", "add %x,"))
    assert main([str(program)]) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith(f"error: {program}:2:3: ")
    assert err[1:3] == [wrong.splitlines()[1], "  ^"]


def test_verify_diagnostics(program: Path, capsys: pytest.CaptureFixture[str]):
    wrong = PROGRAM.replace("relu %x : !inter.rows<N, 3xf64>", "relu %x : !inter.rows<N, 4xf64>")
    program.write_text(wrong.replace("add %y,", "add %x,"))
    assert main([str(program), "--verify-diagnostics"]) == 0
    assert f"{program}:2:3: " in capsys.readouterr().out


def test_split_input_counts_lines_of_the_file(program: Path, capsys: pytest.CaptureFixture[str]):
    wrong = PROGRAM.replace("relu %x : !inter.rows<N, 3xf64>", "relu %x : !inter.rows<N, 4xf64>")
    program.write_text(f"{PROGRAM}// -----\n{wrong.replace('add %y,', 'add %x,')}")
    assert main([str(program), "--split-input-file"]) == 1
    assert f"error: {program}:8:3: " in capsys.readouterr().err


def test_pass_failure_says_where_and_who(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(program), "-p", "autodiff"]) == 1
    err = capsys.readouterr().err
    assert f"error: {program}:1:1: " in err
    assert "note: reported by pass `autodiff`" in err


def test_locations_survive_printing(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(program), "--print-debuginfo"]) == 0
    assert f'loc("{program}":2:3)' in capsys.readouterr().out


def test_crash_leaves_a_reproducer(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "crashes"
    arguments = ["-p", "forget,crash{depth=3},cse", "--reproducer-folder", str(folder)]
    assert main([str(program), *arguments]) == 3
    err = capsys.readouterr().err
    (path,) = folder.iterdir()
    assert "pass `crash` raised ZeroDivisionError: division by zero" in err
    assert f"gnn-opt {path}" in err
    assert "Traceback" in err
    text = path.read_text()
    assert '// RUN: gnn-opt %s -p "crash{depth=3},cse"' in text
    assert "inter.add" not in text
    # the file alone shows the crash again, and any other pipeline can be tried on it
    assert main([str(path), "--reproducer-folder", str(folder)]) == 3
    capsys.readouterr()
    assert main([str(path), "-p", "cse"]) == 0
    assert "inter.relu" in capsys.readouterr().out


def test_dump(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GNNC_DUMP", str(tmp_path / "dump"))
    assert main([str(program), "-p", "verify-sets,forget"]) == 0
    names = sorted(p.name for p in (tmp_path / "dump" / "program-0").iterdir())
    assert names == ["00-input.mlir", "01-verify-sets.mlir", "02-forget.mlir"]


def test_times_and_modules_between_passes(program: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["-p", "forget,cse,verify-sets", "--time-passes", "--print-between-passes"]
    assert main([str(program), *arguments]) == 0
    captured = capsys.readouterr()
    timed = [line.split()[-1] for line in captured.err.splitlines()]
    assert timed == ["forget", "cse", "verify-sets", "total"]
    assert captured.out.count("// IR after ") == 2


def test_check_passes_accepts_right_passes(program: Path):
    assert main([str(program), "-p", "cse,infer-domains,verify-sets", "--check-passes"]) == 0


def test_check_passes_finds_the_wrong_one(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "wrong"
    arguments = ["--check-passes", "--reproducer-folder", str(folder)]
    assert main([str(program), "-p", "cse,forget,verify-sets", *arguments]) == 3
    err = capsys.readouterr().err
    assert "pass `forget` changed the meaning of the module: @f" in err
    assert "result 0 differs" in err
    assert "Traceback" not in err
    (path,) = folder.iterdir()
    assert main([str(path), *arguments]) == 3


def test_check_passes_says_what_it_cannot_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "unknown.mlir"
    path.write_text(
        "func.func @f(%x : !inter.rows<unit, f64>) -> !inter.rows<unit, f64> {\n"
        '  %y = "test.op"(%x) : (!inter.rows<unit, f64>) -> !inter.rows<unit, f64>\n'
        "  func.return %y : !inter.rows<unit, f64>\n}\n"
    )
    assert main([str(path), "-p", "cse", "--check-passes"]) == 0
    assert "note: pass `cse` is not checked: " in capsys.readouterr().err
