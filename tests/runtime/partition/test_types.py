"""Graphs with types of nodes and edges: read from files, cut and saved as one graph."""

import json
from pathlib import Path

import numpy as np
import pytest

from gnnc.runtime import mapped
from gnnc.runtime.partition import files, types
from gnnc.runtime.partition.edges import Edges, in_memory
from gnnc.runtime.partition.files import BadPartition
from gnnc.runtime.partition.parts import PartOfEdges, make_typed_part
from gnnc.runtime.partition.types import Types

COUNTS = {"author": 9, "paper": 14, "venue": 3}
SIZES = {
    ("author", "writes", "paper"): 40,
    ("paper", "none", "author"): 0,
    ("paper", "cites", "paper"): 50,
    ("paper", "appears in", "venue"): 20,
}
TYPES = Types(tuple(COUNTS.items()), tuple(SIZES.items()))
OWNER = np.random.default_rng(3).integers(0, 3, 26).astype(np.int32)


def ends_of_types() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [
        np.stack([random.integers(0, COUNTS[end], n) for end in (key[0], key[2])])
        for key, n in SIZES.items()
    ]


def graph(block: int = 1000) -> Edges:
    """All edges, in blocks that do not end where those of a type do."""
    every = zip(ends_of_types(), TYPES.ends, strict=True)
    ends = np.concatenate([e + TYPES.first[list(of), None] for e, of in every], axis=1)
    starts = range(0, ends.shape[1], block)
    return Edges(26, lambda: [(ends[0, i : i + block], ends[1, i : i + block]) for i in starts])


@pytest.mark.parametrize("block", [1000, 7])
def test_parts_are_the_edges_of_types(block: int) -> None:
    for rank in range(3):
        part = make_typed_part(rank, 3, OWNER, graph(block), TYPES)
        for k, (ends, (source, target)) in enumerate(zip(ends_of_types(), TYPES.ends, strict=True)):
            mine, (first, end) = part.edges[k], TYPES.first[source : source + 2]
            known = [x[(first <= x) & (x < end)] - first for x in (part.owned, part.ghosts)]
            first, end = TYPES.first[target : target + 2]
            owned = part.owned[(first <= part.owned) & (part.owned < end)] - first
            src, dst = mine.ends
            np.testing.assert_array_equal(np.concatenate(known)[src], ends[0, mine.numbers])
            np.testing.assert_array_equal(owned[dst], ends[1, mine.numbers])
            is_local = src < len(known[0])
            assert is_local[: mine.local].all() and not is_local[mine.local :].any()
    numbers = [
        np.sort(np.concatenate([e.numbers for e in of_type]))
        for of_type in zip(
            *(make_typed_part(r, 3, OWNER, graph(), TYPES).edges for r in range(3)), strict=True
        )
    ]
    assert [x.tolist() for x in numbers] == [list(range(n)) for n in SIZES.values()]


def test_saved_and_loaded(tmp_path: Path) -> None:
    manifest = files.save(tmp_path, 3, OWNER, graph(), TYPES)
    assert files.read_manifest(tmp_path) == manifest and manifest.types == TYPES
    assert files.save(tmp_path, 3, OWNER, graph(7), TYPES).digest == manifest.digest
    assert len(list(tmp_path.iterdir())) == 1 + 3 * (1 + 2 * len(SIZES))
    for rank in range(3):
        found, part = (
            files.load_of(tmp_path, manifest, rank),
            make_typed_part(rank, 3, OWNER, graph(), TYPES),
        )
        for name in files.DTYPES:
            np.testing.assert_array_equal(getattr(found, name), getattr(part, name), strict=True)
        for mine, other in zip(found.edges, part.edges, strict=True):
            assert mine.local == other.local
            for name in files.MAPPED:
                x = getattr(mine, name)
                np.testing.assert_array_equal(x, getattr(other, name), strict=True)
                assert mapped.holds(x.ctypes.data) or not x.size
    with pytest.raises(BadPartition, match="partition.json is of a graph with types of nodes"):
        files.load(tmp_path, 0)


def test_files_that_are_missing_or_changed(tmp_path: Path) -> None:
    manifest = files.save(tmp_path, 3, OWNER, graph(), TYPES)
    name = "paper__appears in__venue ends"
    path = tmp_path / manifest.files[1][name].name
    assert path.name.startswith("part-1-3-paper__appears-in__venue-ends-")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(BadPartition, match=f"{path.name} is not the file that was written"):
        files.load_of(tmp_path, manifest, 1)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"the file of {name} is not there: .*{path.name}"):
        files.load_of(tmp_path, manifest, 1)
    assert files.load_of(tmp_path, manifest, 0).rank == 0


@pytest.mark.parametrize("change", ["nodes", "edges", "key"])
def test_damaged_types(change: str, tmp_path: Path) -> None:
    files.save(tmp_path, 3, OWNER, graph(), TYPES)
    path = tmp_path / files.MANIFEST
    whole = json.loads(path.read_text())
    if change == "key":
        whole["types"]["edges"][0][0][0] = "editor"
    else:
        whole["types"][change][0][1] += 1
    path.write_text(json.dumps(whole))
    with pytest.raises(BadPartition, match=r"partition.json is damaged: .*type"):
        files.read_manifest(tmp_path)


def test_types_that_are_not_those_of_the_edges(tmp_path: Path) -> None:
    def refused(text: str, nodes: dict[str, int], edges: dict[types.Key, int]) -> None:
        with pytest.raises(ValueError, match=text):
            PartOfEdges(0, 3, OWNER, graph(), Types(tuple(nodes.items()), tuple(edges.items())))

    fewer, more = SIZES | {TYPES.edges[3][0]: 19}, SIZES | {TYPES.edges[3][0]: 21}
    refused("edges: there are more than the 109 of all types", COUNTS, fewer)
    refused("edges: 110, and the types have 111", COUNTS, more)
    refused("types: of 27 nodes, and there are 26", COUNTS | {"venue": 4}, SIZES)
    refused("there are no nodes of type 'venue'", {"author": 9, "paper": 17}, SIZES)
    two = Types((("a", 13), ("a", 13)), ((("a", "b", "a"), 110),))
    with pytest.raises(ValueError, match="types: 2 have the name 'a'"):
        files.save(tmp_path / "out", 3, OWNER, graph(), two)
    assert not (tmp_path / "out").exists()


def written(folder: Path) -> dict[types.Key, Path]:
    for key, ends in zip(SIZES, ends_of_types(), strict=True):
        np.save(folder / f"{'__'.join(key)}.npy", ends.astype(np.int32))
    return {key: folder / f"{'__'.join(key)}.npy" for key in SIZES}


@pytest.mark.parametrize("block", [1000, 7])
def test_edges_in_files(block: int, tmp_path: Path) -> None:
    found, of_types = types.in_files(written(tmp_path), COUNTS, block)
    assert of_types == TYPES
    ends = np.concatenate(list(map(np.stack, found)), axis=1)
    wanted = np.concatenate(list(map(np.stack, graph())), axis=1)
    np.testing.assert_array_equal(ends, wanted)
    by_name = dict(sorted(written(tmp_path).items()))
    assert dict(types.files_of_types(tmp_path)) == by_name
    _, told = types.in_files(by_name, {"venue": 8})
    authors = int(ends_of_types()[0][0].max()) + 1
    assert dict(told.nodes)["author"] == authors and dict(told.nodes)["venue"] == 8


def test_files_that_are_no_edges_of_types(tmp_path: Path) -> None:
    given = written(tmp_path)
    with pytest.raises(ValueError, match=r"venue.npy: an edge has the end \d, of 1 nodes of type"):
        types.in_files(given, {"venue": 1})
    with pytest.raises(ValueError, match="nodes: no edges have ends of type 'editor', only of aut"):
        types.in_files(given, {"editor": 1})
    with pytest.raises(FileNotFoundError, match="gone.npy"):
        types.in_files(given | {("author", "gone", "paper"): tmp_path / "gone.npy"})
    np.save(tmp_path / "author__paper.npy", ends_of_types()[0])
    with pytest.raises(ValueError, match=r"author__paper.npy: .* SOURCE__NAME__TARGET.npy"):
        types.files_of_types(tmp_path)
    (tmp_path / "author__paper.npy").rename(tmp_path / "edge_index.npy")
    with pytest.raises(ValueError, match="has edge_index.npy and edges with types"):
        types.files_of_types(tmp_path)


def test_a_graph_of_one_type_of_each_is_one_without_types() -> None:
    one = Types((("a", 9),), ((("a", "to", "a"), 40),))
    ends = np.random.default_rng(1).integers(0, 9, (2, 40))
    owner = OWNER[:9]
    typed = PartOfEdges(1, 3, owner, in_memory(*ends, 9), one)
    plain = PartOfEdges(1, 3, owner, in_memory(*ends, 9))
    assert (typed.edges, typed.local) == (plain.edges, plain.local)
    for name in files.DTYPES:
        np.testing.assert_array_equal(typed.nodes[name], plain.nodes[name])
