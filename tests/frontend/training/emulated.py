"""Built programs for CUDA on a machine without a GPU: the driver is fake_cuda.c, on which kernels
run as they do in the emulator."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gnnc.frontend.torch.training import build as building
from gnnc.frontend.torch.training.program import TrainingProgram
from gnnc.runtime import emulator

from .building import EMPTY

IMAGE = b"\x00 the fake driver does not read it \xff"
QUICK = "-std=gnu11 -O1 -fopenmp"
"""What the host's part is compiled with where only the device's counts."""


@dataclass(frozen=True)
class OnDevice:
    """An executable, with the driver and the kernels that it is to find."""

    program: Path
    driver: Path
    kernels: Path

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A run in the program's folder; the variables are those of fake_cuda.c."""
        env = {"OMP_NUM_THREADS": "1", "GNNC_LIBCUDA": str(self.driver)}
        env |= {"FAKE_KERNELS": str(self.kernels)} | variables
        command = [str(self.program), *arguments]
        cwd = self.program.parent
        return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True)

    def trained(self, *arguments: str) -> str:
        """What a program prints that comes to its end."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


def fake_driver(folder: Path) -> Path:
    """fake_cuda.c as a library."""
    library = folder / "libfake_cuda.so"
    source = Path(__file__).parent / "fake_cuda.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    subprocess.run([*command, "-o", str(library), str(source), "-ldl"], check=True)
    return library


def made(
    training: TrainingProgram, folder: Path, driver: Path, *args: Any, **kwargs: Any
) -> OnDevice:
    """A training as a program whose device is the emulator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "images", lambda text, denormals: [IMAGE])
        building.build(training, args, kwargs, folder, target="cuda")
    quickly(folder, "-Wall", "-Werror")
    kernels = emulator.build((folder / "kernels.cu").read_text())
    return OnDevice(folder / "train", driver, kernels)


def quickly(folder: Path, *flags: str) -> Path:
    """The executable of a folder, in less time than its makefile takes for one that is fast."""
    command = ["make", "-C", str(folder), "-j2", " ".join(["FLAGS=" + QUICK, *flags])]
    done = subprocess.run(command, env=EMPTY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "train"


def other_folder(program: OnDevice, folder: Path) -> OnDevice:
    """The same program where it may be given other arrays."""
    shutil.copytree(program.program.parent, folder, dirs_exist_ok=True)
    return OnDevice(folder / "train", program.driver, program.kernels)
