"""A partition in a folder: three files a rank, of graphs with types two more for each further type
of edges, and a manifest that names them.

Files of parts are named by what is in them and never written again; the manifest is replaced as a
whole, last. So whenever a run is stopped, or the disk is full, the folder has the partition that it
had or the new one. The ends of edges and their numbers are files of their own, which are written
block by block and mapped into memory, so neither side needs memory for them.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from .. import durable_file, mapped
from .edges import Edges, Int32, Int64, fingerprint
from .parts import EdgesOfPart, NodesOfPart, Part, PartOfEdges, TypedPart
from .types import SEPARATOR, Types, check_names

MANIFEST = "partition.json"
FORMAT = "partition of gnnc"
VERSION = 3
NUMBERS = ("rank", "ranks", "nodes")
DTYPES = {
    f.name: np.dtype(np.int32 if f.type == "Int32" else np.int64)
    for f in fields(NodesOfPart)
    if f.name not in NUMBERS
}
"""The arrays of the nodes of a part by name, with their dtypes."""
LOCAL = "local"
"""How many edges of each type are local."""
MAPPED = ("ends", "numbers")
"""The arrays of edges of a type, which are files of their own; of int64."""
REST = "nodes"
"""The file of all else."""
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
        types: those of its nodes and edges, where there are types.
        files: of each rank, those of `MAPPED` of each type of edges, and `REST`, by name.
        shapes: of each rank, those of its arrays by name.
    """

    ranks: int
    nodes: int
    edges: int
    graph: str
    types: Types | None
    files: tuple[Mapping[str, File], ...]
    shapes: tuple[Mapping[str, tuple[int, ...]], ...]

    @property
    def digest(self) -> str:
        """SHA-256 of all that it says, so of the files too."""
        return hashlib.sha256(_packed(self)).hexdigest()

    @property
    def mapped(self) -> list[tuple[str, ...]]:
        """The names of `MAPPED` of each type of edges."""
        return _mapped(self.types)


def _mapped(types: Types | None) -> list[tuple[str, ...]]:
    if types is None:
        return [MAPPED]
    return [tuple(f"{SEPARATOR.join(key)} {name}" for name in MAPPED) for key, _ in types.edges]


def save(
    folder: Path, ranks: int, owner: Int32, edges: Edges, types: Types | None = None
) -> Manifest:
    """Writes the parts of all ranks, and the manifest, in two passes over the edges for each and
    one more. `owner` has the rank of each node, int32; `types` are those of nodes and edges.

    The folder is made where there is none; a partition that is there is replaced at the end.

    Raises:
        OSError: something cannot be written; the folder has the partition that it had.
        ValueError: as `PartOfEdges` does, or two types have one name.
    """
    if types is not None:
        check_names(types)
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    before = {f.name for f in folder.glob(_PATTERN)}
    files: list[Mapping[str, File]] = []
    shapes: list[Mapping[str, tuple[int, ...]]] = []
    written: set[str] = set()
    names = _mapped(types)
    try:
        for rank in range(ranks):
            part = PartOfEdges(rank, ranks, owner, edges, types)
            files.append(_write(folder, part, names, written))
            found = {name: part.nodes[name].shape for name in DTYPES}
            for (ends, numbers), n in zip(names, part.edges, strict=True):
                found |= {ends: (2, n), numbers: (n,)}
            shapes.append(found)
        every = sum(s[numbers][0] for s in shapes for _, numbers in names)
        sizes = ranks, edges.nodes, every
        manifest = Manifest(*sizes, fingerprint(edges), types, tuple(files), tuple(shapes))
        durable_file.replace(folder / MANIFEST, memoryview(_packed(manifest)))
    except BaseException:
        _remove(folder, written - before)
        if made:
            with suppress(OSError):  # somebody else writes there too
                folder.rmdir()
        raise
    _remove(folder, before - written)
    return manifest


class _NumbersInFile:
    """The content of a `.npy` file of int64, to be written anywhere in any order."""

    def __init__(self, file: BinaryIO, shape: tuple[int, ...]) -> None:
        header = {"descr": "<i8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        self.file, self.start = file, file.tell()

    def __setitem__(self, at: slice, block: Int64) -> None:
        self.file.seek(self.start + 8 * at.start)
        self.file.write(np.ascontiguousarray(block, "<i8").data)


def _write(
    folder: Path, part: PartOfEdges, names: Sequence[tuple[str, ...]], written: set[str]
) -> Mapping[str, File]:
    """Writes the files of a part; adds their names to `written`."""
    stem = f"part-{part.nodes['rank']}"
    unnamed = {
        name: folder / f"{stem}-{_in_a_file_name(k, name)}.npy"
        for k, of_type in enumerate(names)
        for name in of_type
    }
    unnamed[REST] = folder / f"{stem}-{REST}.npz"
    try:
        with ExitStack() as stack:
            opened = {
                name: stack.enter_context(durable_file.replacing(path))
                for name, path in unnamed.items()
            }
            rest: dict[str, Any] = part.nodes | {LOCAL: np.array(part.local, np.int64)}
            np.savez(opened[REST], **rest)
            sizes = list(zip(names, part.edges, strict=True))
            part.fill(
                [_NumbersInFile(opened[ends], (2, n)) for (ends, _), n in sizes],
                [_NumbersInFile(opened[numbers], (n,)) for (_, numbers), n in sizes],
            )
        return {name: _named(path, written) for name, path in unnamed.items()}
    finally:
        for path in unnamed.values():
            path.unlink(missing_ok=True)


def _in_a_file_name(k: int, name: str) -> str:
    """A name of `_mapped`, of the edges of type `k`: users may have called types anything."""
    return name if name in MAPPED else f"{k}-" + re.sub(r"[^\w.]+", "-", name)


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
    types = manifest.types
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "ranks": manifest.ranks,
        "nodes": manifest.nodes,
        "edges": manifest.edges,
        "graph": manifest.graph,
        "types": None if types is None else {"nodes": types.nodes, "edges": types.edges},
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
    lines, types = whole["parts"], _types(whole["types"])
    mapped = [name for names in _mapped(types) for name in names]
    files = tuple({k: _file(x["files"][k]) for k in (*mapped, REST)} for x in lines)
    arrays = (*DTYPES, *mapped)
    shapes = tuple({name: tuple(map(int, x["shapes"][name])) for name in arrays} for x in lines)
    ranks, nodes, edges = int(whole["ranks"]), int(whole["nodes"]), int(whole["edges"])
    if len(files) != ranks or ranks < 1:
        raise ValueError(f"{len(files)} parts for {ranks} ranks")
    if any(Path(f.name).name != f.name for part in files for f in part.values()):
        raise ValueError("a part lies in another folder")
    if types is not None and (int(types.first[-1]), sum(types.stops[-1:])) != (nodes, edges):
        raise ValueError(f"types of other numbers than {nodes} nodes and {edges} edges")
    return Manifest(ranks, nodes, edges, str(whole["graph"]), types, files, shapes)


def _types(entry: Any) -> Types | None:
    if entry is None:
        return None
    nodes = tuple((str(name), int(n)) for name, n in entry["nodes"])
    edges = tuple(((str(a), str(b), str(c)), int(n)) for (a, b, c), n in entry["edges"])
    return Types(nodes, edges)


def _file(entry: Mapping[str, Any]) -> File:
    return File(str(entry["file"]), int(entry["bytes"]), str(entry["sha256"]))


def load(folder: Path, rank: int, *, ranks: int | None = None, graph: str | None = None) -> Part:
    """The part of a rank of a graph without types, as it was saved; `ranks` and `graph` are as for
    `read_manifest`. The arrays of `MAPPED` lie in the files.

    Raises:
        OSError: the manifest or the part cannot be read.
        BadPartition: as `read_manifest` does, the graph has types, or the part is not in the files
            that were written.
        ValueError: there is no such rank.
    """
    manifest = read_manifest(folder, ranks=ranks, graph=graph)
    if manifest.types is not None:
        raise BadPartition(f"{folder / MANIFEST} is of a graph with types of nodes and edges")
    part = load_of(folder, manifest, rank)
    (of_all,) = part.edges
    rest = {k: x for k, x in vars(part).items() if k != "edges"}
    return Part(**rest, **vars(of_all))


def load_of(folder: Path, manifest: Manifest, rank: int) -> TypedPart:
    """The part of a rank of any graph, of a manifest that was read; a graph without types has one
    type of edges.

    Raises:
        OSError, BadPartition, ValueError: as `load` does.
    """
    if not 0 <= rank < manifest.ranks:
        raise ValueError(f"rank: {rank}, and they are 0 to {manifest.ranks - 1}")
    files, shapes = manifest.files[rank], manifest.shapes[rank]
    for name, file in files.items():
        _check(folder / file.name, file, name)
    path = folder / files[REST].name
    rest, local = _read(path, lambda path: _rest(path, rank, manifest))
    for name, dtype in DTYPES.items():
        _check_array(path, name, rest[name], dtype, shapes[name])
    edges: list[EdgesOfPart] = []
    for names, n in zip(manifest.mapped, local, strict=True):
        arrays: dict[str, Any] = {}
        for short, name in zip(MAPPED, names, strict=True):
            path = folder / files[name].name
            arrays[short] = _read(path, mapped.load)
            _check_array(path, short, arrays[short], np.dtype(np.int64), shapes[name])
        edges.append(EdgesOfPart(n, **arrays))
    return TypedPart(**rest, edges=tuple(edges))


def _check_array(
    path: Path, name: str, array: NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    if array.dtype != dtype or array.shape != shape:
        raise BadPartition(
            f"{path} is no part of this partition: its {name} has another type or shape"
        )


def _check(path: Path, file: File, what: str) -> None:
    try:
        found = path.stat().st_size
    except FileNotFoundError as error:
        text = f"the file of {what} is not there"
        raise FileNotFoundError(error.errno, text, str(path)) from error
    if found != file.bytes:
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


def _rest(path: Path, rank: int, manifest: Manifest) -> tuple[dict[str, Any], list[int]]:
    """What `NodesOfPart` has, and how many edges of each type are local."""
    with np.load(path, allow_pickle=False) as archive:
        numbers = {name: int(archive[name]) for name in NUMBERS}
        arrays: dict[str, NDArray[Any]] = {k: archive[k] for k in DTYPES}
        local = [int(n) for n in archive[LOCAL]]
    wanted = {"rank": rank, "ranks": manifest.ranks, "nodes": manifest.nodes}
    if numbers != wanted:
        raise ValueError(f"it has {numbers}, not {wanted}")
    edges = [manifest.shapes[rank][name][0] for _, name in manifest.mapped]
    if len(local) != len(edges) or any(
        not 0 <= n <= every for n, every in zip(local, edges, strict=True)
    ):
        raise ValueError(f"it has {local} local edges")
    return {**numbers, **arrays}, local
