"""Partitions in folders: what is saved is loaded, and anything else is refused by name."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gnnc.runtime import mapped
from gnnc.runtime.partition.edges import Edges, fingerprint, in_memory
from gnnc.runtime.partition.files import (
    DTYPES,
    MANIFEST,
    MAPPED,
    NUMBERS,
    REST,
    BadPartition,
    load,
    read_manifest,
    save,
)
from gnnc.runtime.partition.parts import make_parts

from .graphs import ring

OUTSIDE = {"file": "../x", "bytes": 1, "sha256": ""}

Cut = tuple[int, np.ndarray, Edges]
"""Ranks, owners, edges."""


def cut(seed: int, ranks: int = 3, nodes: int = 40) -> Cut:
    random = np.random.default_rng(seed)
    edges = in_memory(*random.integers(0, nodes, (2, 4 * nodes)), nodes)
    return ranks, random.integers(0, ranks, nodes).astype(np.int32), edges


def check_loaded(folder: Path, ranks: int, owner: np.ndarray, edges: Edges) -> None:
    for part in make_parts(ranks, owner, edges):
        found = load(folder, part.rank, ranks=ranks, graph=fingerprint(edges))
        for name in NUMBERS:
            assert getattr(found, name) == getattr(part, name)
        assert found.local == part.local
        for name in (*DTYPES, *MAPPED):
            np.testing.assert_array_equal(getattr(found, name), getattr(part, name), strict=True)
            assert mapped.holds(getattr(found, name).ctypes.data) == (name in MAPPED), name


def names(folder: Path) -> set[str]:
    return {f.name for f in folder.iterdir()}


def test_saved_and_loaded(tmp_path: Path):
    manifest = save(tmp_path / "a" / "b", *cut(0))
    check_loaded(tmp_path / "a" / "b", *cut(0))
    found = read_manifest(tmp_path / "a" / "b")
    assert found == manifest and found.digest == manifest.digest
    files = {f.name for part in manifest.files for f in part.values()}
    assert names(tmp_path / "a" / "b") == {MANIFEST, *files}
    assert (manifest.nodes, manifest.edges, len(files)) == (40, 160, 9)


def test_blocks_do_not_matter(tmp_path: Path):
    ranks, owner, edges = cut(0)
    ((src, dst),) = edges.blocks()
    blocks = Edges(40, lambda: [(src[i : i + 7], dst[i : i + 7]) for i in range(0, 160, 7)])
    assert save(tmp_path, ranks, owner, blocks).digest == save(tmp_path, *cut(0)).digest


def test_another_partition_takes_the_place(tmp_path: Path):
    before = save(tmp_path, *cut(0))
    for _ in range(2):  # the second time nothing changes
        after = save(tmp_path, *cut(1, ranks=2))
        check_loaded(tmp_path, *cut(1, ranks=2))
        assert len(names(tmp_path)) == 7
    assert before.digest != after.digest


def test_the_files_of_version_1_go(tmp_path: Path):
    (tmp_path / "part-0-0123456789abcdef.npz").write_bytes(b"")
    save(tmp_path, *cut(1, ranks=2))
    assert len(names(tmp_path)) == 7


def test_parts_without_anything(tmp_path: Path):
    edges = in_memory(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    save(tmp_path, 2, np.zeros(0, np.int32), edges)
    for part in make_parts(2, np.zeros(0, np.int32), edges):
        found = load(tmp_path, part.rank, graph=fingerprint(edges))
        assert found.ends.shape == (2, 0) and len(found.owned) == len(found.ghosts) == 0


def test_what_a_rank_writes_to_its_part_stays_with_it(tmp_path: Path):
    save(tmp_path, *cut(0))
    load(tmp_path, 0).ends[:] = 7
    check_loaded(tmp_path, *cut(0))


def test_wrong_owners_leave_what_was_there(tmp_path: Path):
    save(tmp_path, *cut(0))
    before = names(tmp_path)
    ranks, owner, edges = cut(1)
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(ValueError, match="owner: parts from 0 to 2, and they are 0 to 1"):
            save(folder, 2, owner, edges)
    assert names(tmp_path) == before
    check_loaded(tmp_path, *cut(0))


@pytest.fixture
def full_disk() -> Iterator[int]:
    """No file of this process may have more than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield 20_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, full_disk: int):
    save(tmp_path, *cut(0))
    before = names(tmp_path)
    owner = np.zeros(2000, np.int32)
    owner[:40] = 1  # whose part fits
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(OSError, match="File too large"):
            save(folder, 2, 1 - owner, cut(1, nodes=2000)[2])
    assert names(tmp_path) == before
    check_loaded(tmp_path, *cut(0))


@pytest.mark.parametrize("last", range(7))
def test_a_stopped_run_leaves_what_was_there(last: int, tmp_path: Path):
    """In whichever pass over the edges."""
    save(tmp_path, *cut(0))
    before = names(tmp_path)
    ranks, owner, edges = cut(1)
    passes = iter(range(last))

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if next(passes, None) is None:
            raise KeyboardInterrupt
        yield from edges.blocks()

    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, ranks, owner, Edges(40, blocks))
    assert names(tmp_path) == before
    check_loaded(tmp_path, *cut(0))


@pytest.mark.parametrize("kind", [*MAPPED, REST])
def test_damaged_parts(kind: str, tmp_path: Path):
    manifest = save(tmp_path, *cut(0))
    first, second, third = (tmp_path / files[kind].name for files in manifest.files)
    whole = first.read_bytes()
    first.write_bytes(whole[:-1])
    with pytest.raises(BadPartition, match=f"{first.name} has .* bytes, and .* were written"):
        load(tmp_path, 0)
    first.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
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
    save(tmp_path, *cut(0))
    with pytest.raises(BadPartition, match="partition.json is for 3 ranks, and there are 4"):
        load(tmp_path, 0, ranks=4)
    with pytest.raises(BadPartition, match="partition.json is of another graph"):
        load(tmp_path, 0, graph=fingerprint(ring(40)))
    whole = json.loads((tmp_path / MANIFEST).read_text())
    first, second, third = whole["parts"]
    change(tmp_path, parts=[second, first, third])
    with pytest.raises(BadPartition, match="part-1-.*npz is no part of this partition.*'rank': 1"):
        load(tmp_path, 0)
    mixed = {"files": first["files"] | {"ends": second["files"]["ends"]}, "shapes": first["shapes"]}
    change(tmp_path, parts=[mixed, second, third])
    with pytest.raises(BadPartition, match="part-1-ends.*npy is no part .* its ends has another"):
        load(tmp_path, 0)
    change(tmp_path, version=1)
    with pytest.raises(BadPartition, match="partition.json has version 1, this gnnc reads 3"):
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
        {"edges": None},
        {"parts": [{"files": dict.fromkeys((*MAPPED, REST), OUTSIDE),
                    "shapes": dict.fromkeys((*DTYPES, *MAPPED), [0])}], "ranks": 1},
    ],
)  # fmt: skip
def test_damaged_manifests(entries: dict[str, object], tmp_path: Path):
    save(tmp_path, *cut(0))
    change(tmp_path, **entries)
    with pytest.raises(BadPartition, match="partition.json is damaged"):
        load(tmp_path, 0)


def test_any_bit(tmp_path: Path):
    """A bit that is another, in any file, is found, or means nothing."""
    save(tmp_path, *cut(0))
    random, found = np.random.default_rng(1), 0
    for path in sorted(tmp_path.iterdir()):
        whole = path.read_bytes()
        for _ in range(60):
            data = bytearray(whole)
            data[random.integers(len(data))] ^= 1 << int(random.integers(8))
            path.write_bytes(data)
            try:
                check_loaded(tmp_path, *cut(0))
            except (BadPartition, FileNotFoundError):
                found += 1
        path.write_bytes(whole)
    check_loaded(tmp_path, *cut(0))
    assert found > 200


def test_fingerprints():
    src, dst = np.array([0, 1, 2]), np.array([1, 2, 0])
    graph = fingerprint(in_memory(src, dst, 3))
    assert graph == fingerprint(in_memory(src.astype(np.int32), dst, 3)) == fingerprint(ring(3))
    for other in (in_memory(dst, src, 3), in_memory(src, dst, 4), in_memory(src[:2], dst[:2], 3)):
        assert fingerprint(other) != graph
