"""A target is a record and a printer: no pass, driver or runtime knows the one added here."""

from __future__ import annotations

import pytest

from gnnc.frontend.compiler import Options, artifact_of
from gnnc.frontend.gnn_opt import main
from gnnc.passes.driver.pipelines import pipeline
from gnnc.passes.targets import TARGETS
from gnnc.runtime.program import Program

from .compiled import after
from .outline import OUTLINE
from .test_programs import FILES


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target is there for these tests alone."""
    monkeypatch.setitem(TARGETS, OUTLINE.name, OUTLINE)


def test_the_pipeline_ends_in_its_passes():
    text = pipeline(True, OUTLINE)
    assert text.endswith("lower-to-intra{target=outline},fuse-traversals{target=outline}")
    assert "reorder-linear{target=outline}" in text and "schedule" not in text


def test_gnn_opt_prints_it(tmp_path, capsys: pytest.CaptureFixture[str]):
    source = tmp_path / "gcn.mlir"
    source.write_text(FILES["gcn"])
    assert main([str(source), "-p", pipeline(True, OUTLINE), "-t", "outline"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":")][-2:] == ["forward:", "backward:"]
    assert any(" <- " in line and "in_x" in line for line in lines)
    with pytest.raises(SystemExit):
        main(["--help"])
    assert OUTLINE.about in capsys.readouterr().out


def test_the_runtime_refuses_it_by_name():
    artifact = artifact_of(after(FILES["gcn"], pipeline(True, OUTLINE)), OUTLINE)
    with pytest.raises(
        ValueError, match="the target outline, which paper runs: .* cpu, cuda, emulator"
    ):
        Program(artifact)


def test_options_know_it():
    assert Options(target="outline").target == "outline"
    with pytest.raises(ValueError, match="'abacus': the targets are openmp, .*, outline"):
        Options(target="abacus")
