"""How the blocks of a device share rows is the same in programs without Python."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from gnnc.runtime import standalone
from gnnc.runtime.cpu.toolchain import compiler, program_flags
from gnnc.runtime.sets.shares import cuts, pieces

CUTS = [(0, 5, 1000), (4, 16, 1000), (4, 2048, 8), (1, 1, 7), (4, 3, 1)]
"""Costs of a row, grains, and numbers of chunks."""
USED = ("base.c", "base.h", "sets.h", "shares.c", "shares.h")


class Shares(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int64), ("at", ctypes.POINTER(ctypes.c_int64)))


class Group(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_int64),
        ("kept", ctypes.c_int64),
        ("ptr", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("shares")
    sources = standalone.sources("cuda")
    for name in USED:
        (folder / name).write_text(sources[name])
    command = [*compiler().command, *program_flags(), "-Wall", "-Werror", "-shared", "-fPIC"]
    files = [str(folder / name) for name in USED if name.endswith(".c")]
    subprocess.run([*command, "-o", str(folder / "shares.so"), *files], check=True)
    found = ctypes.CDLL(str(folder / "shares.so"))
    found.cuts_of.restype = found.pieces_of.restype = Shares
    found.cuts_of.argtypes = [ctypes.POINTER(Group), *[ctypes.c_int64] * 3]
    found.pieces_of.argtypes = [ctypes.POINTER(Group), ctypes.c_int64]
    return found


def groups(seed: int) -> np.ndarray:
    """Where groups begin: many are empty, some are long."""
    g = np.random.default_rng(seed)
    count = [0, 1, 2, 40][seed % 4]
    length = g.integers(0, 12, count) * (g.random(count) < 0.7) * g.choice([1, 30], count)
    return np.concatenate([[0], np.cumsum(length)]).astype(np.int64)


def in_c(shares: Shares, row: int) -> np.ndarray:
    return np.array([shares.at[i] for i in range(shares.count * row)], np.int64)


@pytest.mark.parametrize("seed", range(24))
def test_shares(seed: int, library: ctypes.CDLL):
    ptr = groups(seed)
    group = Group(len(ptr) - 1, int(ptr[-1]), ptr.ctypes.data, None)
    for given in CUTS:
        assert in_c(library.cuts_of(group, *given), 1).tolist() == cuts(ptr, *given).tolist()
    for piece in (1, 3, 20, 500):
        ours = library.pieces_of(group, piece)
        assert in_c(ours, 3).tolist() == pieces(ptr, piece).ravel().tolist()
