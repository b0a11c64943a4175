"""docs/writing-a-pass.md, followed word for word in a copy of the tree: what it shows works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "writing-a-pass.md").read_text()
BLOCK = re.compile(r"<!-- (file|add): ([^ ,]+)(?:, (.+?))? -->\n```\w*\n(.*?)```", re.DOTALL)
FOLDERS = ("bench", "codegen", "dialects", "filecheck", "frontend", "passes", "runtime", "tests")


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which all that the page says has been done."""
    root = tmp_path_factory.mktemp("page") / "gnnc"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    for kind, name, after, text in BLOCK.findall(PAGE):
        path = root / name
        if kind == "file":
            assert not path.exists()
            path.write_text(text)
            continue
        old = path.read_text()
        assert old.count(after) == 1
        path.write_text(old.replace(after, f"{after}\n{text}"))
    return root


def run(root: Path, command: Sequence[str]) -> None:
    """Runs a command in the copy. Its words are shown where it fails."""
    env = {**os.environ, "PYTHONPATH": str(root.parent)}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def made(pattern: str) -> list[str]:
    """The files that the page makes."""
    found = [name for kind, name, _, _ in BLOCK.findall(PAGE) if kind == "file"]
    return [name for name in found if re.match(pattern, name)]


def test_the_page_makes_files() -> None:
    assert len(made("filecheck/")) > 1 and made("passes/") and made("tests/")


def test_ir_tests(followed: Path) -> None:
    lit = Path(sys.executable).with_name("lit")
    run(followed, [sys.executable, str(lit), "--quiet", *made("filecheck/")])


def test_tests_of_meaning(followed: Path) -> None:
    run(followed, [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *made("tests/")])


def test_a_pass_joins_the_others(followed: Path) -> None:
    """Every pass takes what the random programs give it, a new one too."""
    case = "tests/passes/test_all_passes.py"
    run(followed, [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", case])
