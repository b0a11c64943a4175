"""`gnnc build`: from a file to a program that trains."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gnnc.frontend.cli import main
from gnnc.runtime.cuda import images as cuda_images

from .building import compiled, numbers, trained
from .conftest import PROGRAM


def test_build(folder: Path, capsys: pytest.CaptureFixture[str]):
    """The losses of the script in Python, and of the program by plain make."""
    command = [
        "build",
        "program.py",
        "--set",
        "hidden=5",
        "--data",
        "arrays",
        "--seed",
        "3",
        "-o",
        "out",
    ]
    assert main(command) == 0
    assert "out: small in C with 21 arrays. To train: make -C out run" in capsys.readouterr().out
    ours = trained(compiled(folder / "out"))
    root = str(Path(__file__).parents[4])
    script = f"import sys; sys.path.insert(0, {root!r}); import runpy; "
    script += "runpy.run_path('program.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(ours.splitlines()) == 20
    assert numbers(ours) == pytest.approx(numbers(done.stdout), rel=1e-6)


def test_build_for_a_device(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Kernels as machine code, where something makes it; else nothing is written."""
    command = ["build", "program.py", "--data", "arrays", "--target", "cuda", "-o", "out"]
    monkeypatch.setattr(cuda_images.shutil, "which", lambda name: None)
    monkeypatch.setattr(cuda_images.nvrtc, "why_not", lambda: "NVRTC is not installed")
    assert main(command) == 1
    assert "nvcc is not on the PATH, and NVRTC is not installed" in capsys.readouterr().err
    assert not (folder / "out").exists()
    monkeypatch.setattr(cuda_images.shutil, "which", lambda name: "nvcc")
    monkeypatch.setattr(cuda_images, "by_nvcc", lambda nvcc, text, denormals: text[:5].encode())
    assert main(command) == 0
    assert "out: small in C with 21 arrays. To train: make -C out run" in capsys.readouterr().out
    text = (folder / "out" / "kernels.cu").read_text()
    assert "GNNC_EXPORT(forward_0" in text
    numbers = "".join(f"{byte}," for byte in text[:5].encode())
    assert f"image_0[] = {{\n{numbers}\n}};" in (folder / "out" / "image.c").read_text()


MISTAKES = {
    "none.py": ("", "there is no file none.py"),
    "empty.py": ("x = 1", "should have one function under @gnnc.training, it has none"),
    "two.py": (
        PROGRAM + "\nagain = gnnc.training(small.__wrapped__)\n",
        r"it has several \(small, again\): choose one by --name",
    ),
    "wrong.py": (
        PROGRAM.replace("loss.backward()", "loss.backward(1)"),
        r"wrong.py:16:\d+: `backward` takes no arguments here",
    ),
}


@pytest.mark.parametrize("name", list(MISTAKES))
def test_files_without_a_program(name: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    text, message = MISTAKES[name]
    if text:
        (folder / name).write_text(text)
    assert main(["build", name, "--data", "arrays", "-o", "out"]) == 1
    assert re.search(message, capsys.readouterr().err)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "hidden"], "'hidden' is no argument: write NAME=VALUE"),
        (["--set", "depth=3"], "depth"),
        (["--name", "large"], "has no training 'large'; it has small"),
        (["--data", "elsewhere/arrays"], "there is no such folder"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["build", "program.py", "--data", "arrays", *arguments, "-o", "out"]) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "out").exists()
