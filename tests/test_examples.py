"""The README's example and those of examples/ run as they are."""

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import gnnc

ROOT = Path(__file__).parent.parent
CORA = "planetoid/Cora/raw"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_examples():
    texts = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    compiled, step, dgl = texts
    names: dict[str, object] = {}
    exec(compiled, names)
    model = names["model"]
    assert isinstance(model, torch.nn.Module)
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]])
    out = model(torch.randn(3, 1433), edge_index)
    out.sum().backward()
    assert out.shape == (3, 7)
    assert all(p.grad is not None for p in model.parameters())
    names |= {"x": torch.randn(3, 1433), "edge_index": edge_index, "y": torch.tensor([0, 1, 2])}
    exec(step, names)
    assert float(names["loss"]) < 0.1  # type: ignore[arg-type]
    assert gnnc.explain(names["step"]).fallbacks == []
    exec(dgl, names)
    assert names["out"].shape == (3, 7)  # type: ignore[attr-defined]
    assert gnnc.explain(names["model"]).fallbacks == []


def test_readme_links():
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target


def test_gcn_example(capsys: pytest.CaptureFixture[str]):
    example("gcn").main()
    printed = capsys.readouterr().out
    found = re.search(r"test accuracy ([0-9.]+)%", printed)
    assert found is not None
    assert float(found[1]) > 70


def test_dgl_example():
    """A script that says `import dgl`, in an interpreter that has no DGL."""
    script = ROOT / "examples" / "dgl_gat.py"
    command = [sys.executable, "-m", "gnnc.dgl", "--always", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = re.search(r"DGL is gnnc.dgl; accuracy on the other nodes ([0-9.]+)%", done.stdout)
    assert found is not None
    assert float(found[1]) > 55
    assert "nothing runs in torch" in done.stdout


def test_loops_example(capsys: pytest.CaptureFixture[str]):
    module = example("loops")
    module.main()
    printed = capsys.readouterr().out
    apart = re.findall(r"^(\w+) +loss .* at most (\S+) apart", printed, re.MULTILINE)
    assert [name for name, _ in apart] == ["RGCN", "RGAT", "HGT"]
    assert all(float(x) < 2e-5 for _, x in apart)
    programs = (module.rgcn, module.rgat, module.hgt)
    assert sum(len(inspect.getsource(p.__wrapped__).splitlines()) for p in programs) <= 51
    assert [gnnc.explain(p).fallbacks for p in programs] == [[], [], []]


def test_training_example(capsys: pytest.CaptureFixture[str]):
    program = example("training").citation
    torch.manual_seed(0)
    program(epochs=20)
    printed = capsys.readouterr().out.split()
    assert printed[::2] == [str(k) for k in range(20)]
    assert float(printed[-1]) < float(printed[1]) - 0.05
    assert len(inspect.getsource(program.__wrapped__).splitlines()) <= 13
    text = (ROOT / "docs" / "training.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert re.sub(" +#.*", "", inspect.getsource(program.__wrapped__)) == shown


Calls = list[list[str]]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, Calls]:
    """The demo, finding no data beside it, and what it asks `gnnc` for instead of running it."""
    module, calls = example("demo"), Calls()

    def record(arguments: list[str]) -> int:
        calls.append(arguments)
        if "--root" in arguments:  # PyG reads the raw files, and writes beside them
            raw = Path(arguments[arguments.index("--root") + 1]).parent / CORA
            assert [p.name for p in raw.iterdir()] == ["ind.cora.x"]
            (raw.parent / "processed").mkdir()
        return 0

    monkeypatch.setattr(module, "main", record)
    monkeypatch.setattr(module, "BESIDE", Path("nowhere"))
    monkeypatch.delenv("GNNC_DATA", raising=False)
    return module, calls


def test_demo_without_cora(demo: tuple[ModuleType, Calls], capsys: pytest.CaptureFixture[str]):
    module, calls = demo
    assert module.demo(["--epochs", "3"]) == 0
    assert calls == [["train", "--epochs", "3"]]
    assert "set GNNC_DATA" in capsys.readouterr().out


def test_demo_with_cora(
    demo: tuple[ModuleType, Calls], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    module, calls = demo
    (tmp_path / CORA).mkdir(parents=True)
    (tmp_path / CORA / "ind.cora.x").write_text("")
    (tmp_path / CORA / "ind.cora.x").chmod(0o400)
    monkeypatch.setenv("GNNC_DATA", str(tmp_path))
    assert module.demo(["--epochs", "3"]) == 0
    assert calls[0] == ["train", "--epochs", "3"]
    assert calls[1][:4] == ["train", "--dataset", "Planetoid:Cora", "--root"]
    assert calls[1][5:] == ["--seeds", "5", "--epochs", "3"]
    assert [p.name for p in (tmp_path / CORA).parent.iterdir()] == ["raw"]
