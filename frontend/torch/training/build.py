"""A training as a folder with a program in C that trains without Python, and its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....codegen.cuda.standalone import program_files as cuda_files
from ....codegen.openmp.standalone import program_files as openmp_files
from ....codegen.standalone.description import NoProgram, Standalone
from ....passes.targets.cuda import BUILT
from ....runtime import standalone
from ....runtime.cpu import toolchain
from ....runtime.cuda.images import images
from .capture import Captured, capture
from .program import TrainingProgram


@dataclass(frozen=True)
class Build:
    """How programs are built for a target: `step` is the target that the step is compiled for
    here, `parts` are those of the library that programs need, `files` makes the files that are a
    program's own, of the program, the names of the library's files, the flags for C and the value
    of -march, with denormal numbers or not.
    """

    step: str
    parts: tuple[str, ...]
    files: Callable[[Standalone, Sequence[str], Sequence[str], str, bool], dict[str, str]]


def _openmp(
    program: Standalone, library: Sequence[str], flags: Sequence[str], march: str, denormals: bool
) -> dict[str, str]:
    return openmp_files(program, library, flags, march)


def _cuda(
    program: Standalone, library: Sequence[str], flags: Sequence[str], march: str, denormals: bool
) -> dict[str, str]:
    made = images(program.artifact["device"], denormals)
    return cuda_files(program, library, flags, march, made)


BUILDS: dict[str, Build] = {
    "openmp": Build("openmp", (), _openmp),
    "reference": Build("reference", (), _openmp),
    "cuda": Build(BUILT.name, ("cuda",), _cuda),
}
"""The targets that programs are built for. Kernels of the reference target are C as well, and run
as those of openmp; those of cuda run on another machine."""


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
        NoImages, NvccError, NvrtcError: kernels for a GPU cannot be compiled here.
    """
    if target not in BUILDS:
        raise ValueError(
            f"programs are not built for the target {target!r}: there are {', '.join(BUILDS)}"
        )
    way = BUILDS[target]
    captured = capture(training, args, kwargs, way.step, seed)
    library = standalone.sources(*way.parts)
    march = training.options.march or toolchain.default_march()
    flags = toolchain.program_flags(march)
    own = way.files(captured.program, list(library), flags, march, training.options.denormals)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**library, **own}.items():
        (folder / name).write_text(text)
    for part, arrays in captured.arrays.items():
        (folder / part).mkdir(exist_ok=True)
        for name, numbers in arrays.items():
            np.save(folder / part / f"{name}.npy", numbers)
    return captured


__all__ = ["BUILDS", "NoProgram", "build"]
