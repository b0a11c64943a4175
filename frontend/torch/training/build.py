"""A training as a folder with a program in C that trains without Python, and its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....codegen.cuda.standalone import program_files as cuda_files
from ....codegen.openmp.ranks_standalone import program_files as ranks_files
from ....codegen.openmp.standalone import program_files as openmp_files
from ....codegen.standalone.description import NoProgram, Standalone
from ....passes.targets.cuda import BUILT
from ....runtime import standalone
from ....runtime.cpu import toolchain
from ....runtime.cuda.images import images
from ....runtime.ranks.launch import tool
from .capture import Captured, capture
from .program import TrainingProgram


@dataclass(frozen=True)
class ToBuild:
    """What the files of a program are made of: the names of the library's files, the flags for C
    and the value of -march, with denormal numbers or not, and for how many ranks it is."""

    program: Standalone
    library: Sequence[str]
    flags: Sequence[str]
    march: str
    denormals: bool
    ranks: int | None


@dataclass(frozen=True)
class Build:
    """How programs are built for a target: `step` is the target that the step is compiled for
    here, `parts` are those of the library that programs need, `files` makes the files that are a
    program's own. `ranks`: whether they are for several processes.
    """

    step: str
    parts: tuple[str, ...]
    files: Callable[[ToBuild], dict[str, str]]
    ranks: bool = False


def _openmp(what: ToBuild) -> dict[str, str]:
    return openmp_files(what.program, what.library, what.flags, what.march)


def _cuda(what: ToBuild) -> dict[str, str]:
    made = images(what.program.artifact["device"], what.denormals)
    return cuda_files(what.program, what.library, what.flags, what.march, made)


def _mpi(what: ToBuild) -> dict[str, str]:
    assert what.ranks is not None  # `build` has looked
    tools = tool("mpicc"), tool("mpiexec")
    return ranks_files(what.program, what.library, what.flags, what.march, what.ranks, *tools)


BUILDS: dict[str, Build] = {
    "openmp": Build("openmp", (), _openmp),
    "reference": Build("reference", (), _openmp),
    "cuda": Build(BUILT.name, ("cuda",), _cuda),
    "mpi": Build("openmp", ("mpi",), _mpi, ranks=True),
}
"""The targets that programs are built for. Kernels of the reference target are C as well, and run
as those of openmp; those of cuda run on another machine; mpi has those of openmp on each rank."""


def build(
    training: TrainingProgram,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    folder: Path,
    *,
    target: str = "openmp",
    seed: int = 0,
    ranks: int | None = None,
) -> Captured:
    """Write a training with these arguments as a program into a folder, which is made; files of
    earlier builds there are replaced.

    The program has the losses of `torch.manual_seed(seed); training(*args, **kwargs)`. One for the
    target `mpi` has them on `ranks` processes, for which the graph is cut here.

    Raises:
        ValueError: there is no build for the target, or `ranks` is not what it takes.
        CannotLaunch: a program is for ranks, and there is no MPI.
        NoProgram: a part of the training has no form without Python, with the reason.
        ProgramError: a report has none, with its place.
        NoImages, NvccError, NvrtcError: kernels for a GPU cannot be compiled here.
    """
    if target not in BUILDS:
        raise ValueError(
            f"programs are not built for the target {target!r}: there are {', '.join(BUILDS)}"
        )
    way = BUILDS[target]
    if way.ranks and (ranks is None or ranks < 1):
        raise ValueError(f"ranks: a program for {target} is made for 1 or more, not {ranks}")
    if way.ranks:
        tool("mpicc")  # before what takes long
    elif ranks is not None:
        raise ValueError(f"ranks: a program for the target {target} has none")
    captured = capture(training, args, kwargs, way.step, seed, ranks)
    library = standalone.sources(*way.parts)
    march = training.options.march or toolchain.default_march()
    flags = toolchain.program_flags(march)
    denormals = training.options.denormals
    own = way.files(ToBuild(captured.program, list(library), flags, march, denormals, ranks))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**library, **own}.items():
        (folder / name).write_text(text)
    for part, arrays in captured.arrays.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        for name, numbers in arrays.items():
            np.save(folder / part / f"{name}.npy", numbers)
    return captured


__all__ = ["BUILDS", "NoProgram", "build"]
