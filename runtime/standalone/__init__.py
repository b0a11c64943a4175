"""C sources of programs that train without Python: the meaning of `runtime/sets` in C, arrays in
files, and what a step of training needs besides its kernels.
"""

from __future__ import annotations

from pathlib import Path

from ..sets import kernels

_FOLDER = Path(__file__).parent


def sources() -> dict[str, str]:
    """The texts of all files of the library, by name; `structure.c` is that of the runtime."""
    files = sorted(f for f in _FOLDER.iterdir() if f.suffix in (".c", ".h"))
    return {f.name: f.read_text() for f in files} | {"structure.c": kernels.source()}
