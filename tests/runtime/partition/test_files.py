"""Partitions in folders: what is saved is loaded, and anything else is refused by name."""

import json
import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnnc.runtime.partition.edges import fingerprint, in_memory
from gnnc.runtime.partition.files import MANIFEST, BadPartition, load, read_manifest, save
from gnnc.runtime.partition.parts import DTYPES, NUMBERS, Part, make_parts

from .graphs import ring


def parts_of(seed: int, ranks: int = 3, nodes: int = 40) -> tuple[list[Part], str]:
    random = np.random.default_rng(seed)
    edges = in_memory(*random.integers(0, nodes, (2, 4 * nodes)), nodes)
    owner = random.integers(0, ranks, nodes).astype(np.int32)
    return list(make_parts(ranks, owner, edges)), fingerprint(edges)


def check_loaded(folder: Path, parts: list[Part], graph: str) -> None:
    for part in parts:
        found = load(folder, part.rank, ranks=len(parts), graph=graph)
        for name in NUMBERS:
            assert getattr(found, name) == getattr(part, name)
        for name in DTYPES:
            np.testing.assert_array_equal(getattr(found, name), getattr(part, name), strict=True)


def names(folder: Path) -> set[str]:
    return {f.name for f in folder.iterdir()}


def test_saved_and_loaded(tmp_path: Path):
    parts, graph = parts_of(0)
    manifest = save(tmp_path / "a" / "b", parts, graph)
    check_loaded(tmp_path / "a" / "b", parts, graph)
    assert read_manifest(tmp_path / "a" / "b") == manifest
    assert names(tmp_path / "a" / "b") == {MANIFEST, *(name for name, _, _ in manifest.files)}


def test_another_partition_takes_the_place(tmp_path: Path):
    save(tmp_path, *parts_of(0))
    parts, graph = parts_of(1, ranks=2)
    for _ in range(2):  # the second time nothing changes
        save(tmp_path, parts, graph)
        check_loaded(tmp_path, parts, graph)
        assert len(names(tmp_path)) == 3


def test_parts_without_anything(tmp_path: Path):
    edges = in_memory(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    parts = list(make_parts(2, np.zeros(0, np.int32), edges))
    save(tmp_path, parts, fingerprint(edges))
    check_loaded(tmp_path, parts, fingerprint(edges))


def test_wrong_parts_leave_what_was_there(tmp_path: Path):
    parts, graph = parts_of(0)
    save(tmp_path, parts, graph)
    before = names(tmp_path)
    others, _ = parts_of(1)
    with pytest.raises(ValueError, match="parts: 2, and there should be one a rank"):
        save(tmp_path, others[:2], graph)
    with pytest.raises(ValueError, match="parts: rank 2 of 3 is not the next one"):
        save(tmp_path, [others[0], others[2]], graph)
    with pytest.raises(ValueError, match="parts: 0"):
        save(tmp_path / "new", [], graph)
    assert names(tmp_path) == before
    check_loaded(tmp_path, parts, graph)


@pytest.fixture
def full_disk() -> Iterator[int]:
    """No file of this process may have more than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield 20_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, full_disk: int):
    parts, graph = parts_of(0)
    save(tmp_path, parts, graph)
    before = names(tmp_path)
    small, _ = parts_of(1)
    large, _ = parts_of(1, nodes=2000)
    mixed = [small[0], replace(large[1], nodes=40), small[2]]
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(OSError, match="File too large"):
            save(folder, mixed, graph)
    assert names(tmp_path) == before
    check_loaded(tmp_path, parts, graph)


def test_a_stopped_run_leaves_what_was_there(tmp_path: Path):
    parts, graph = parts_of(0)
    save(tmp_path, parts, graph)

    def stopped() -> Iterator[Part]:
        yield parts_of(1)[0][0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, stopped(), graph)
    check_loaded(tmp_path, parts, graph)
    assert len(names(tmp_path)) == 4


def test_damaged_parts(tmp_path: Path):
    parts, graph = parts_of(0)
    manifest = save(tmp_path, parts, graph)
    first, second, third = (tmp_path / name for name, _, _ in manifest.files)
    whole = first.read_bytes()
    first.write_bytes(whole[:-1])
    with pytest.raises(BadPartition, match=f"{first.name} has .* bytes, and .* were written"):
        load(tmp_path, 0)
    first.write_bytes(whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:])
    with pytest.raises(BadPartition, match=f"{first.name} is not the file that was written"):
        load(tmp_path, 0)
    second.unlink()
    with pytest.raises(FileNotFoundError, match=second.name):
        load(tmp_path, 1)
    assert load(tmp_path, 2).rank == 2
    with pytest.raises(ValueError, match="rank: 3, and they are 0 to 2"):
        load(tmp_path, 3)
    assert third.exists()


def change(folder: Path, **entries: object) -> None:
    whole = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(whole | entries))


def test_foreign_partitions(tmp_path: Path):
    parts, graph = parts_of(0)
    save(tmp_path, parts, graph)
    with pytest.raises(BadPartition, match="partition.json is for 3 ranks, and there are 4"):
        load(tmp_path, 0, ranks=4)
    with pytest.raises(BadPartition, match="partition.json is of another graph"):
        load(tmp_path, 0, graph=fingerprint(ring(40)))
    whole = json.loads((tmp_path / MANIFEST).read_text())
    change(tmp_path, parts=[whole["parts"][1], whole["parts"][0], whole["parts"][2]])
    with pytest.raises(BadPartition, match="part-1-.*npz is no part of this partition.*'rank': 1"):
        load(tmp_path, 0)
    change(tmp_path, version=2)
    with pytest.raises(BadPartition, match="partition.json has version 2, this gnnc reads 1"):
        load(tmp_path, 0)
    with pytest.raises(FileNotFoundError, match="partition.json"):
        load(tmp_path / "elsewhere", 0)


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"format": "partition of gnnc"', "\0\xff"])
def test_manifests_that_are_none(text: str, tmp_path: Path):
    (tmp_path / MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(BadPartition, match="partition.json is not the manifest of a partition"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "entries",
    [
        {"ranks": 2},
        {"ranks": 0, "parts": []},
        {"parts": [{}, {}, {}]},
        {"parts": None},
        {"parts": [{"file": "../x", "bytes": 1, "sha256": "", "sizes": dict.fromkeys(DTYPES, 0)}],
         "ranks": 1},
    ],
)  # fmt: skip
def test_damaged_manifests(entries: dict[str, object], tmp_path: Path):
    save(tmp_path, *parts_of(0))
    change(tmp_path, **entries)
    with pytest.raises(BadPartition, match="partition.json is damaged"):
        load(tmp_path, 0)


def test_any_bit(tmp_path: Path):
    """A bit that is another, in any file, is found, or means nothing."""
    parts, graph = parts_of(0)
    save(tmp_path, parts, graph)
    random, found = np.random.default_rng(1), 0
    for path in sorted(tmp_path.iterdir()):
        whole = path.read_bytes()
        for _ in range(60):
            data = bytearray(whole)
            data[random.integers(len(data))] ^= 1 << int(random.integers(8))
            path.write_bytes(data)
            try:
                check_loaded(tmp_path, parts, graph)
            except (BadPartition, FileNotFoundError):
                found += 1
        path.write_bytes(whole)
    check_loaded(tmp_path, parts, graph)
    assert found > 200


def test_fingerprints():
    src, dst = np.array([0, 1, 2]), np.array([1, 2, 0])
    graph = fingerprint(in_memory(src, dst, 3))
    assert graph == fingerprint(in_memory(src.astype(np.int32), dst, 3)) == fingerprint(ring(3))
    for other in (in_memory(dst, src, 3), in_memory(src, dst, 4), in_memory(src[:2], dst[:2], 3)):
        assert fingerprint(other) != graph
