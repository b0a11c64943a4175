"""Machine code as C text."""

import ctypes
import subprocess
from pathlib import Path

from gnnc.codegen.cuda.standalone import image_text
from gnnc.runtime import standalone
from gnnc.runtime.cpu.toolchain import compiler

CHUNKS = [bytes(range(256)), b"\0", b'"\\\n']


def library(text: str, folder: Path) -> ctypes.CDLL:
    sources = standalone.sources("cuda")
    for name in ("base.h", "device.h"):
        (folder / name).write_text(sources[name])
    (folder / "image.c").write_text(text)
    command = [*compiler().command, "-std=gnu11", "-Wall", "-Werror", "-shared", "-fPIC"]
    command += ["-o", str(folder / "image.so"), str(folder / "image.c")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "image.so"))


def test_images_and_names(tmp_path: Path):
    found = library(image_text(CHUNKS, ["forward_0", "forward_1_combine"]), tmp_path)
    assert ctypes.c_int.in_dll(found, "image_count").value == 3
    images = (ctypes.c_void_p * 3).in_dll(found, "images")
    read = [ctypes.string_at(at or 0, len(c)) for at, c in zip(images, CHUNKS, strict=True)]
    assert read == CHUNKS
    assert all((at or 0) % 16 == 0 for at in images)
    assert ctypes.c_int.in_dll(found, "kernel_count").value == 2
    names = (ctypes.c_char_p * 2).in_dll(found, "kernel_names")
    assert list(names) == [b"forward_0", b"forward_1_combine"]


def test_a_program_without_kernels(tmp_path: Path):
    found = library(image_text([b"x"], []), tmp_path)
    assert ctypes.c_int.in_dll(found, "kernel_count").value == 0
