"""C sources of programs that train without Python: the meaning of `runtime/sets` in C, arrays in
files, and what a step of training needs besides its kernels.
"""

from __future__ import annotations

from pathlib import Path

from .. import arena
from ..sets import kernels

_FOLDER = Path(__file__).parent


def sources(*parts: str) -> dict[str, str]:
    """The texts of all files of the library, by name; `structure.c` and `arena.c` are those of the
    runtime. `parts` are folders of what only some targets need, "cuda".
    """
    folders = [_FOLDER, *(_FOLDER / part for part in parts)]
    files = sorted(f for folder in folders for f in folder.iterdir() if f.suffix in (".c", ".h"))
    shared = {"structure.c": kernels.source(), "arena.c": arena.source()}
    return {f.name: f.read_text() for f in files} | shared
