"""`gnnc build`: a training in a file as a program in C, with kernels for the CPU or for a GPU, or
for several ranks by MPI, that trains without Python.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

from ..loops.errors import ProgramError
from .children import Refused

MODULE = "gnnc_program"
"""The name of the user's file as a module, so that what is guarded by `__main__` does not run."""
TARGETS = ("openmp", "reference", "cuda", "mpi")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", help="a Python file with a function under @gnnc.training")
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="arguments of the function: numbers, texts, lists as Python writes them",
    )
    parser.add_argument(
        "--data",
        default=None,
        metavar="PLACE",
        help="the function's first argument is what gnnc.load gives of this: a folder of .npy "
        "files, a .npz file, a class of torch_geometric.datasets with its name, or default "
        "(None: the function has no such argument, or loads it)",
    )
    parser.add_argument("--root", default="data", help="the folder that data sets are read from")
    parser.add_argument(
        "--name", default=None, help="the function, where the file has several (None: the only one)"
    )
    parser.add_argument("--seed", type=int, default=0, help="torch's seed, before the setup runs")
    parser.add_argument(
        "--target",
        choices=TARGETS,
        default=TARGETS[0],
        help="cuda: for NVIDIA GPUs, which the machine that builds need not have; it needs nvcc or "
        "NVRTC. mpi: for several ranks, processes that MPI starts and that divide the graph",
    )
    parser.add_argument(
        "-n",
        "--ranks",
        type=int,
        default=None,
        help="how many ranks a program for mpi has; the graph is cut for them here",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="where the program is written"
    )


def run(args: argparse.Namespace) -> int:
    """Builds, says what to do next, and returns the exit status."""
    from ...codegen.standalone.description import NoProgram
    from ...runtime.cuda.errors import CudaError
    from ...runtime.ranks.launch import CannotLaunch
    from ..torch.training.build import build
    from ..torch.training.data import load

    try:
        training = _training(Path(args.program), args.name)
        given = [] if args.data is None else [load(args.data, args.root)]
        options = dict(map(_argument, args.set))
        folder = Path(args.output)
        made = build(
            training,
            given,
            options,
            folder,
            target=args.target,
            seed=args.seed,
            ranks=args.ranks,
        )
    except (
        *(Refused, NoProgram, CannotLaunch, CudaError, FileNotFoundError, ValueError, TypeError),
    ) as error:
        print(f"gnnc build: {error}", file=sys.stderr)
        return 1
    except ProgramError as error:
        print(f"gnnc build: {error.filename}:{error.lineno}:{error.offset}: {error.msg}\n"
              f"{error.text}", file=sys.stderr)  # fmt: skip
        return 1
    count = sum(map(len, made.arrays.values()))
    print(f"{folder}: {made.program.name} in C with {count} arrays. To train: make -C {folder} run")
    return 0


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise Refused(f"{text!r} is no argument: write NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _training(path: Path, name: str | None) -> Any:
    """The training in a file.

    Raises:
        Refused: there is no file, none of that name in it, or several and no name.
    """
    from ..torch.training.program import TrainingProgram

    if not path.is_file():
        raise Refused(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(MODULE, path.resolve())
    if spec is None or spec.loader is None:
        raise Refused(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    sys.path.insert(0, str(path.resolve().parent))  # what it imports from beside it
    spec.loader.exec_module(module)
    found = {n: x for n, x in vars(module).items() if isinstance(x, TrainingProgram)}
    if name is not None and name not in found:
        raise Refused(f"{path} has no training {name!r}; it has {', '.join(found) or 'none'}")
    if name is None and len(found) != 1:
        which = f"several ({', '.join(found)}): choose one by --name" if found else "none"
        raise Refused(f"{path} should have one function under @gnnc.training, it has {which}")
    return found[name] if name is not None else next(iter(found.values()))
