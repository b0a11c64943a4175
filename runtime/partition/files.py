"""A partition in a folder: three files a rank, and a manifest that names them.

Files of parts are named by what is in them and never written again; the manifest is replaced as a
whole, last. So whenever a run is stopped, or the disk is full, the folder has the partition that it
had or the new one. The ends of edges and their numbers are files of their own, which are written
block by block and mapped into memory, so neither side needs memory for them.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from .. import durable_file, mapped
from .edges import Edges, Int32, Int64, fingerprint
from .parts import Part, PartOfEdges

MANIFEST = "partition.json"
FORMAT = "partition of gnnc"
VERSION = 2
NUMBERS = ("rank", "ranks", "nodes", "local")
DTYPES = {
    f.name: np.dtype(np.int32 if f.type == "Int32" else np.int64)
    for f in fields(Part)
    if f.name not in NUMBERS
}
"""The arrays of a part by name, with their dtypes."""
MAPPED = ("ends", "numbers")
"""The arrays that are files of their own."""
REST = "nodes"
"""The file of all others."""
_PATTERN = "part-*.np[yz]"


class BadPartition(ValueError):
    """A folder or a file of it that is no partition, not that of the graph, or damaged."""


@dataclass(frozen=True)
class File:
    """A file as it was written: its name, bytes and SHA-256."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a folder has.

    Attributes:
        ranks, nodes: as `Part` has them.
        edges: of the whole graph.
        graph: `edges.fingerprint` of the graph.
        files: of each rank, those of `MAPPED` and `REST` by these names.
        shapes: of each rank, those of its arrays by name.
    """

    ranks: int
    nodes: int
    edges: int
    graph: str
    files: tuple[Mapping[str, File], ...]
    shapes: tuple[Mapping[str, tuple[int, ...]], ...]

    @property
    def digest(self) -> str:
        """SHA-256 of all that it says, so of the files too."""
        return hashlib.sha256(_packed(self)).hexdigest()


def save(folder: Path, ranks: int, owner: Int32, edges: Edges) -> Manifest:
    """Writes the parts of all ranks, and the manifest, in two passes over the edges for each and
    one more. `owner` has the rank of each node, int32.

    The folder is made where there is none; a partition that is there is replaced at the end.

    Raises:
        OSError: something cannot be written; the folder has the partition that it had.
        ValueError: as `PartOfEdges` does.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    before = {f.name for f in folder.glob(_PATTERN)}
    files: list[Mapping[str, File]] = []
    shapes: list[Mapping[str, tuple[int, ...]]] = []
    written: set[str] = set()
    try:
        for rank in range(ranks):
            part = PartOfEdges(rank, ranks, owner, edges)
            files.append(_write(folder, part, written))
            small = {name: part.rest[name].shape for name in DTYPES if name not in MAPPED}
            shapes.append(small | {"ends": (2, part.edges), "numbers": (part.edges,)})
        every = sum(s["numbers"][0] for s in shapes)
        found = Manifest(ranks, edges.nodes, every, fingerprint(edges), tuple(files), tuple(shapes))
        durable_file.replace(folder / MANIFEST, memoryview(_packed(found)))
    except BaseException:
        _remove(folder, written - before)
        if made:
            with suppress(OSError):  # somebody else writes there too
                folder.rmdir()
        raise
    _remove(folder, before - written)
    return found


class _NumbersInFile:
    """The content of a `.npy` file of int64, to be written anywhere in any order."""

    def __init__(self, file: BinaryIO, shape: tuple[int, ...]) -> None:
        header = {"descr": "<i8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        self.file, self.start = file, file.tell()

    def __setitem__(self, at: slice, block: Int64) -> None:
        self.file.seek(self.start + 8 * at.start)
        self.file.write(np.ascontiguousarray(block, "<i8").data)


def _write(folder: Path, part: PartOfEdges, written: set[str]) -> Mapping[str, File]:
    """Writes the files of a part; adds their names to `written`."""
    unnamed = {name: folder / f"part-{part.rest['rank']}-{name}.npy" for name in MAPPED}
    unnamed[REST] = folder / f"part-{part.rest['rank']}-{REST}.npz"
    try:
        with (
            durable_file.replacing(unnamed["ends"]) as ends,
            durable_file.replacing(unnamed["numbers"]) as numbers,
            durable_file.replacing(unnamed[REST]) as rest,
        ):
            np.savez(rest, **part.rest)
            part.fill(_NumbersInFile(ends, (2, part.edges)), _NumbersInFile(numbers, (part.edges,)))
        return {name: _named(path, written) for name, path in unnamed.items()}
    finally:
        for path in unnamed.values():
            path.unlink(missing_ok=True)


def _named(path: Path, written: set[str]) -> File:
    """A file under a name that tells what is in it."""
    found = File("", path.stat().st_size, _sha256(path))
    name = f"{path.stem}-{found.sha256[:16]}{path.suffix}"
    path.replace(path.with_name(name))
    written.add(name)
    return File(name, found.bytes, found.sha256)


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _packed(manifest: Manifest) -> bytes:
    lines = [
        {
            "files": {
                k: {"file": f.name, "bytes": f.bytes, "sha256": f.sha256} for k, f in files.items()
            },
            "shapes": {name: list(shape) for name, shape in shapes.items()},
        }
        for files, shapes in zip(manifest.files, manifest.shapes, strict=True)
    ]
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "ranks": manifest.ranks,
        "nodes": manifest.nodes,
        "edges": manifest.edges,
        "graph": manifest.graph,
        "parts": lines,
    }
    return (json.dumps(whole, indent=1, sort_keys=True) + "\n").encode()


def read_manifest(folder: Path, *, ranks: int | None = None, graph: str | None = None) -> Manifest:
    """What a folder says it has.

    `ranks` and `graph` (a fingerprint) are what it should be of, where they are given.

    Raises:
        OSError: there is no manifest that can be read.
        BadPartition: it is none, of another version, of another number of ranks or another graph.
    """
    path = folder / MANIFEST
    try:
        found: object = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadPartition(f"{path} is not the manifest of a partition: {error}") from error
    whole = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if whole.get("format") != FORMAT:
        raise BadPartition(f"{path} is not the manifest of a partition")
    if whole.get("version") != VERSION:
        raise BadPartition(f"{path} has version {whole.get('version')}, this gnnc reads {VERSION}")
    try:
        manifest = _unpacked(whole)
    except (KeyError, TypeError, ValueError) as error:
        raise BadPartition(f"{path} is damaged: {error!r}") from error
    if ranks is not None and manifest.ranks != ranks:
        raise BadPartition(f"{path} is for {manifest.ranks} ranks, and there are {ranks}")
    if graph is not None and manifest.graph != graph:
        raise BadPartition(f"{path} is of another graph")
    return manifest


def _unpacked(whole: Mapping[str, Any]) -> Manifest:
    lines = whole["parts"]
    files = tuple({k: _file(x["files"][k]) for k in (*MAPPED, REST)} for x in lines)
    shapes = tuple({name: tuple(map(int, x["shapes"][name])) for name in DTYPES} for x in lines)
    ranks, nodes, edges = int(whole["ranks"]), int(whole["nodes"]), int(whole["edges"])
    if len(files) != ranks or ranks < 1:
        raise ValueError(f"{len(files)} parts for {ranks} ranks")
    if any(Path(f.name).name != f.name for part in files for f in part.values()):
        raise ValueError("a part lies in another folder")
    return Manifest(ranks, nodes, edges, str(whole["graph"]), files, shapes)


def _file(entry: Mapping[str, Any]) -> File:
    return File(str(entry["file"]), int(entry["bytes"]), str(entry["sha256"]))


def load(folder: Path, rank: int, *, ranks: int | None = None, graph: str | None = None) -> Part:
    """The part of a rank, as it was saved; `ranks` and `graph` are as for `read_manifest`. The
    arrays of `MAPPED` lie in the files.

    Raises:
        OSError: the manifest or the part cannot be read.
        BadPartition: as `read_manifest` does, or the part is not in the files that were written.
        ValueError: there is no such rank.
    """
    return load_of(folder, read_manifest(folder, ranks=ranks, graph=graph), rank)


def load_of(folder: Path, manifest: Manifest, rank: int) -> Part:
    """The same, of a manifest that was read."""
    if not 0 <= rank < manifest.ranks:
        raise ValueError(f"rank: {rank}, and they are 0 to {manifest.ranks - 1}")
    files, shapes = manifest.files[rank], manifest.shapes[rank]
    for file in files.values():
        _check(folder / file.name, file)
    rest = _read(folder / files[REST].name, lambda path: _rest(path, rank, manifest))
    for name in MAPPED:
        rest[name] = _read(folder / files[name].name, mapped.load)
    for name, dtype in DTYPES.items():
        if rest[name].dtype != dtype or rest[name].shape != shapes[name]:
            raise BadPartition(
                f"{folder / files[name if name in MAPPED else REST].name} is no part of this "
                f"partition: its {name} has another type or shape"
            )
    return Part(**rest)


def _check(path: Path, file: File) -> None:
    if (found := path.stat().st_size) != file.bytes:
        raise BadPartition(
            f"{path} has {found} bytes, and {file.bytes} were written: it is cut or changed"
        )
    if _sha256(path) != file.sha256:
        raise BadPartition(f"{path} is not the file that was written: its SHA-256 is another")


def _read(path: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(path)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BadPartition(f"{path} is no part of this partition: {error}") from error


def _rest(path: Path, rank: int, manifest: Manifest) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        numbers = {name: int(archive[name]) for name in NUMBERS}
        arrays: dict[str, NDArray[Any]] = {k: archive[k] for k in DTYPES if k not in MAPPED}
    wanted = {"rank": rank, "ranks": manifest.ranks, "nodes": manifest.nodes}
    if numbers != numbers | wanted:
        raise ValueError(f"it has {numbers}, not {wanted}")
    if not 0 <= numbers["local"] <= manifest.shapes[rank]["numbers"][0]:
        raise ValueError(f"it has {numbers['local']} local edges")
    return {**numbers, **arrays}
