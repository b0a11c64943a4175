"""A training as a folder with a program in C that trains without Python, and its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....codegen.openmp.standalone import program_files as openmp_files
from ....codegen.standalone.description import NoProgram, Standalone
from ....runtime import standalone
from ....runtime.cpu import toolchain
from .capture import Captured, capture
from .program import TrainingProgram

Files = Callable[[Standalone, Sequence[str], Sequence[str], str], dict[str, str]]

BUILDS: dict[str, Files] = {"openmp": openmp_files, "reference": openmp_files}
"""The targets that programs are built for: who makes the files that are a program's own. Kernels of
the reference target are C as well, and run as those of openmp."""


def build(
    training: TrainingProgram,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    folder: Path,
    *,
    target: str = "openmp",
    seed: int = 0,
) -> Captured:
    """Write a training with these arguments as a program into a folder, which is made; files of
    earlier builds there are replaced.

    The program has the losses of `torch.manual_seed(seed); training(*args, **kwargs)`.

    Raises:
        ValueError: there is no build for the target.
        NoProgram: a part of the training has no form without Python, with the reason.
        ProgramError: a report has none, with its place.
    """
    if target not in BUILDS:
        raise ValueError(
            f"programs are not built for the target {target!r}: there are {', '.join(BUILDS)}"
        )
    captured = capture(training, args, kwargs, target, seed)
    library = standalone.sources()
    march = training.options.march or toolchain.default_march()
    flags = toolchain.program_flags(march)
    own = BUILDS[target](captured.program, list(library), flags, march)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**library, **own}.items():
        (folder / name).write_text(text)
    for part, arrays in captured.arrays.items():
        (folder / part).mkdir(exist_ok=True)
        for name, numbers in arrays.items():
            np.save(folder / part / f"{name}.npy", numbers)
    return captured


__all__ = ["BUILDS", "NoProgram", "build"]
