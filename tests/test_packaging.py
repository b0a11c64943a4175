"""What is installed is what the checkout has, and it needs no torch where it should not."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import gnnc

ROOT = Path(__file__).parent.parent
FOLDERS = ("bench", "codegen", "dialects", "frontend", "passes", "runtime")
SOURCES = ("*.py", "*.c", "*.cpp", "*.h", "*.cuh")


def packages() -> set[str]:
    inits = [init for folder in FOLDERS for init in (ROOT / folder).rglob("__init__.py")]
    return {"gnnc"} | {".".join(("gnnc", *i.parent.relative_to(ROOT).parts)) for i in inits}


def test_every_package_is_listed():
    with open(ROOT / "pyproject.toml", "rb") as file:
        listed = tomllib.load(file)["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    assert set(listed) == packages()


def test_every_folder_with_sources_is_a_package():
    folders = {s.parent for f in FOLDERS for s in (ROOT / f).rglob("*.py")}
    assert [f for f in folders if not (f / "__init__.py").is_file()] == []


def test_type_checkers_see_every_package():
    for name in (*FOLDERS, "__init__.py", "py.typed"):
        assert (ROOT / "typings" / "gnnc" / name).resolve() == (ROOT / name).resolve()


def test_wheel_has_every_source(tmp_path: Path):
    skipped = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "Output")
    shutil.copytree(ROOT, tmp_path / "source", ignore=skipped, symlinks=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "-w", str(tmp_path), str(tmp_path / "source")]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("gnnc/")}
    sources = {s for f in FOLDERS for pattern in SOURCES for s in (ROOT / f).rglob(pattern)}
    wanted = {f"gnnc/{source.relative_to(ROOT)}" for source in sources}
    assert inside == wanted | {"gnnc/__init__.py", "gnnc/py.typed"}


WALK = (
    "import importlib, pkgutil, gnnc.{package} as p; "
    "[importlib.import_module(m.name) for m in pkgutil.walk_packages(p.__path__, p.__name__ + '.')]"
)
"""Imports every module of a package."""


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "statement",
    [
        "import gnnc; dir(gnnc)",
        "import gnnc.frontend.gnn_opt as g; [f() for f in g.get_all_passes().values()]",
        "import gnnc.frontend.gnn_opt as g; [f() for f in g.get_all_targets().values()]",
        "import gnnc.frontend.cli",
        "import gnnc.frontend.argo.runtime",
        *(
            WALK.format(package=p)
            for p in (
                "dialects",
                "passes",
                "codegen",
                "frontend.plan",
                "runtime.emulator",
                "runtime.partition",
                "runtime.sampling",
                "runtime.sets",
            )
        ),
        "import gnnc.dialects as d; [f() for f in d.get_all_dialects().values()]",
    ],
)
def test_needs_no_torch(statement: str):
    code = f"import sys; sys.modules['torch'] = None; {statement}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_public_names():
    for name in gnnc.__all__:
        assert getattr(gnnc, name).__name__.split(".")[-1] == name  # a module has its path
    assert set(gnnc.__all__) < set(dir(gnnc))


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'complie'"):
        gnnc.complie  # noqa: B018


def test_versions_agree():
    with open(ROOT / "pyproject.toml", "rb") as file:
        assert tomllib.load(file)["project"]["version"] == gnnc.__version__
