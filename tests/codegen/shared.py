"""The programs of tests/passes. The folders of tests are packages of their own, so a file of
another one is loaded by its path."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def _load(name: str) -> ModuleType:
    path = Path(__file__).parents[1] / "passes" / f"{name}.py"
    spec = spec_from_file_location(f"programs_of_passes_{name}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LAYERS: dict[str, str] = _load("programs").PROGRAMS
_small = _load("small_programs")
SMALL: dict[str, str] = _small.PROGRAMS


def program(arguments: str, results: str, body: str) -> str:
    """A function @main on the sets of the small programs."""
    return _small.program(arguments, results, body)
