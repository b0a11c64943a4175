import ctypes
import os
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gnnc.runtime import cache
from gnnc.runtime.cpu import toolchain

SOURCE = "#include <stdint.h>\nint64_t answer(int64_t x) { return x + 41; }\n"


def start(code: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def python(code: str, **env: str) -> str:
    process = start(code, **env)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


USE = f"""
from gnnc.runtime.cpu import toolchain
path = toolchain.compile_source({SOURCE!r})
assert toolchain.load(path).answer(1) == 42
print(toolchain.stats().compiled, toolchain.stats().hits)
"""


def test_compiles_once(cache_root: Path):
    before = toolchain.stats()
    path = toolchain.compile_source(SOURCE)
    assert toolchain.load(path).answer(1) == 42
    assert toolchain.compile_source(SOURCE) == path
    after = toolchain.stats()
    assert (after.compiled - before.compiled, after.hits - before.hits) == (1, 1)
    assert path.parent == cache_root / "objects"
    assert path.with_suffix(".c").read_text().startswith("#include <stdint.h>")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_second_process_finds_the_cache(cache_root: Path):
    assert python(USE) == "1 0"
    assert python(USE) == "0 1"


def test_second_process_runs_no_compiler_at_all(cache_root: Path, tmp_path: Path):
    """The probe of the compiler is cached as well."""
    log = tmp_path / "log"
    wrapper = tmp_path / "mycc"
    wrapper.write_text(f'#!/bin/sh\necho run >> {log}\nexec cc "$@"\n')
    wrapper.chmod(0o755)
    assert python(USE, CC=str(wrapper)) == "1 0"
    runs = len(log.read_text().split())
    assert python(USE, CC=str(wrapper)) == "0 1"
    assert len(log.read_text().split()) == runs


def test_many_processes_at_once(cache_root: Path):
    processes = [start(USE) for _ in range(6)]
    outs = [process.communicate(timeout=120) for process in processes]
    assert all(process.returncode == 0 for process in processes), outs
    assert sum(int(out.split()[0]) for out, _ in outs) == 1


def cut(blob: bytes) -> bytes:
    return blob[: len(blob) // 2]


def flip(blob: bytes) -> bytes:
    middle = len(blob) // 2
    return blob[:middle] + bytes([blob[middle] ^ 1]) + blob[middle + 1 :]


def empty(blob: bytes) -> bytes:
    return b""


def unloadable(blob: bytes) -> bytes:
    return cache.seal(b"not a shared object")


@pytest.mark.parametrize("damage", [cut, flip, empty, unloadable])
def test_damaged_entry_is_rebuilt(cache_root: Path, damage):
    assert python(USE) == "1 0"
    (path,) = (cache_root / "objects").glob("*.so")
    path.write_bytes(damage(path.read_bytes()))
    compiled, _ = python(USE).split()
    assert compiled == "1"
    assert python(USE) == "0 1"


def test_entry_that_vanishes_before_it_is_loaded(cache_root: Path):
    path = toolchain.compile_source(SOURCE)
    path.unlink()
    assert toolchain.load(path).answer(1) == 42


def test_load_of_a_foreign_file(tmp_path: Path):
    with pytest.raises(OSError, match="nothing.so"):
        toolchain.load(tmp_path / "nothing.so")


def test_compile_error_shows_all_one_needs(cache_root: Path):
    with pytest.raises(toolchain.CompileError) as caught:
        toolchain.compile_source("int f(void) { return undeclared_thing; }")
    message = str(caught.value)
    assert "undeclared_thing" in message
    assert "-fopenmp" in message
    assert str(caught.value.source) in message
    assert "undeclared_thing" in caught.value.source.read_text()


def test_no_compiler(cache_root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(toolchain.NoCompiler, match="apt install gcc"):
        toolchain.compile_source(SOURCE)


def test_compiler_that_does_not_work(cache_root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CC", "false")
    with pytest.raises(toolchain.NoCompiler, match="OpenMP"):
        toolchain.compile_source(SOURCE)


def test_unknown_march(cache_root: Path):
    with pytest.raises(toolchain.NoCompiler, match="-march=pdp11"):
        toolchain.compiler("pdp11")


def test_flags_keep_ieee_arithmetic():
    flags = toolchain.compiler().flags
    assert "-ffast-math" not in flags
    assert {"-O3", "-fopenmp", "-std=gnu11", "-fno-math-errno"} <= set(flags)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names of x86 processors")
def test_march_decides_vector_width_and_entry(cache_root: Path, monkeypatch: pytest.MonkeyPatch):
    assert toolchain.vector_bytes("x86-64-v4") == 64
    assert toolchain.vector_bytes("x86-64-v3") == 32
    assert toolchain.vector_bytes("x86-64") == 16
    paths = {toolchain.compile_source(SOURCE, march=m) for m in ("x86-64-v3", "x86-64")}
    assert len(paths) == 2
    monkeypatch.setenv("GNNC_MARCH", "x86-64")
    assert toolchain.compile_source(SOURCE) in paths
    assert toolchain.vector_bytes() == 16


OVERFLOW = """
#include <stdlib.h>
__attribute__((noinline)) int at(const int *p, int i) { return p[i]; }
int f(int i) { int *p = calloc(4, 4); int r = at(p, i); free(p); return r; }
"""


def test_sanitizer_sees_a_read_out_of_bounds(cache_root: Path):
    path = toolchain.compile_source(OVERFLOW, sanitize=True)
    assert path != toolchain.compile_source(OVERFLOW)
    code = f"import ctypes; ctypes.CDLL({str(path)!r}).f(4)"
    process = start(code, **toolchain.sanitizer_environment())
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "heap-buffer-overflow" in err


def test_artifacts(cache_root: Path):
    assert cache.get_bytes("program 1") is None
    cache.put_bytes("program 1", b'{"steps": []}')
    cache.put_bytes("program 2", b"")
    assert cache.get_bytes("program 1") == b'{"steps": []}'
    assert cache.get_bytes("program 2") == b""
    assert cache.get_bytes("program 3") is None


def test_artifacts_are_made_once(cache_root: Path):
    """Though threads ask at the same time, and again where it failed."""
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        time.sleep(0.05)
        if len(made) == 1:
            raise ValueError("not yet")
        return b"program"

    def ask() -> bytes | None:
        try:
            return cache.get_or_make("program 4", make)
        except ValueError:
            return None

    with ThreadPoolExecutor(4) as threads:
        found = [f.result() for f in [threads.submit(ask) for _ in range(4)]]
    assert sorted(found, key=bool) == [None, *[b"program"] * 3]
    assert len(made) == 2


def test_damaged_artifact_counts_as_absent(cache_root: Path):
    cache.put_bytes("key", b"a long enough text")
    (path,) = (cache_root / "objects").glob("*.json")
    path.write_bytes(flip(path.read_bytes()))
    assert cache.get_bytes("key") is None
    assert not path.exists()


def test_cache_stays_within_its_limit(cache_root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GNNC_CACHE_LIMIT", "20000")
    for i in range(30):
        cache.put_bytes(f"key {i}", bytes(1000))
        os.utime(max((cache_root / "objects").iterdir(), key=os.path.getctime), (i, i))
    present = [i for i in range(30) if cache.get_bytes(f"key {i}") is not None]
    assert present == list(range(30 - len(present), 30))
    assert 10 <= len(present) < 20
    monkeypatch.setenv("GNNC_CACHE_LIMIT", "lots")
    with pytest.raises(ValueError, match="GNNC_CACHE_LIMIT"):
        cache.limit()


def test_cache_place_that_is_not_a_directory(cache_root: Path):
    cache_root.mkdir()
    (cache_root / "objects").write_text("")
    with pytest.raises(cache.CacheError, match="GNNC_CACHE"):
        cache.directory()


def test_cache_open_to_others_is_closed(cache_root: Path):
    (cache_root / "objects").mkdir(parents=True)
    (cache_root / "objects").chmod(0o777)
    assert stat.S_IMODE(cache.directory().stat().st_mode) == 0o700


def test_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GNNC_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(cache, "_private", None)
    with pytest.warns(UserWarning, match="set GNNC_CACHE"):
        place = cache.directory()
    assert cache.directory() == place
    shutil.rmtree(place)


CHOICES = """
#include <stdint.h>
void choices(int64_t n, const uint8_t *a, const uint8_t *b, const double *x, double *y)
{
    for (int64_t i = 0; i < n; ++i) {
        double v[4], w[4];
        for (int f = 0; f < 4; ++f) v[f] = a[i * 4 + f] ? 0.0 : x[i * 4 + f];
        for (int f = 0; f < 4; ++f) w[f] = b[i * 4 + f] ? 1.0 : 0.25;
        for (int f = 0; f < 4; ++f) y[i * 4 + f] = v[f] * w[f];
    }
}
"""


def test_choices_by_masks_are_right(cache_root: Path):
    """GCC 12 gives other numbers with -O3 where it makes vectors of the branches of such loops."""
    library = toolchain.load(toolchain.compile_source(CHOICES))
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 72), np.uint8)
    x, y = rng.normal(size=72), np.empty(72)
    pointers = [ctypes.c_void_p(v.ctypes.data) for v in (a, b, x, y)]
    library.choices(ctypes.c_int64(18), *pointers)
    np.testing.assert_array_equal(y, np.where(a, 0.0, x) * np.where(b, 1.0, 0.25))


def test_functions_are_compiled_by_several_processes(
    cache_root: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[list[str]] = []
    run = subprocess.run

    def watched(command: list[str], **kwargs: object):
        seen.append(command)
        return run(command, **kwargs)  # pyright: ignore

    toolchain.compiler()
    monkeypatch.setattr(subprocess, "run", watched)
    for count in (3, 1):
        monkeypatch.setattr(toolchain.threads, "num_threads", lambda count=count: count)
        source = f"int f(void) {{ return {count}; }}\nint g(void) {{ return f() + 1; }}\n"
        assert toolchain.load(toolchain.compile_source(source)).g() == count + 1
    assert ("-flto=3" in seen[0]) == toolchain.compiler().spreads
    assert not any(flag.startswith("-flto") for flag in seen[1])
