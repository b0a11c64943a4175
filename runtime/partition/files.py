"""A partition in a folder: a file a rank, and a manifest that names them.

Files of parts are named by what is in them and never written again; the manifest is replaced as a
whole, last. So whenever a run is stopped, or the disk is full, the folder has the partition that it
had or the new one.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .. import durable_file
from .parts import DTYPES, NUMBERS, Part

MANIFEST = "partition.json"
FORMAT = "partition of gnnc"
VERSION = 1
_PATTERN = "part-*.npz"


class BadPartition(ValueError):
    """A folder or a file of it that is no partition, not that of the graph, or damaged."""


@dataclass(frozen=True)
class Manifest:
    """What a folder has.

    Attributes:
        ranks, nodes: as `Part` has them.
        graph: `edges.fingerprint` of the graph.
        files: a line a rank: its file's name, bytes and SHA-256.
        sizes: a line a rank: how long each of its arrays is.
    """

    ranks: int
    nodes: int
    graph: str
    files: tuple[tuple[str, int, str], ...]
    sizes: tuple[Mapping[str, int], ...]


def save(folder: Path, parts: Iterable[Part], graph: str) -> Manifest:
    """Writes the parts of all ranks, in the order of the ranks, and the manifest.

    The folder is made where there is none; a partition that is there is replaced at the end.

    Raises:
        OSError: something cannot be written; the folder has the partition that it had.
        ValueError: `parts` are not those of all ranks of one graph.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    before = {f.name for f in folder.glob(_PATTERN)}
    written: list[tuple[str, int, str]] = []
    sizes: list[Mapping[str, int]] = []
    first: Part | None = None
    try:
        for part in parts:
            first = first or part
            if (part.rank, part.ranks, part.nodes) != (len(written), first.ranks, first.nodes):
                raise ValueError(f"parts: rank {part.rank} of {part.ranks} is not the next one")
            written.append(_write(folder, part))
            sizes.append({name: len(getattr(part, name)) for name in DTYPES})
        if first is None or len(written) != first.ranks:
            raise ValueError(f"parts: {len(written)}, and there should be one a rank")
        manifest = Manifest(first.ranks, first.nodes, graph, tuple(written), tuple(sizes))
        durable_file.replace(folder / MANIFEST, memoryview(_packed(manifest)))
    except BaseException:
        _remove(folder, {name for name, _, _ in written} - before)
        if made:
            with suppress(OSError):  # somebody else writes there too
                folder.rmdir()
        raise
    _remove(folder, before - {name for name, _, _ in written})
    return manifest


def _write(folder: Path, part: Part) -> tuple[str, int, str]:
    """Writes a part's file; its name, bytes and SHA-256."""
    unnamed = folder / f"part-{part.rank}.npz"
    arrays: Any = {name: np.asarray(getattr(part, name)) for name in (*NUMBERS, *DTYPES)}
    try:
        with durable_file.replacing(unnamed) as file:
            np.savez(file, **arrays)
        size, found = unnamed.stat().st_size, _sha256(unnamed)
        name = f"part-{part.rank}-{found[:16]}.npz"
        unnamed.replace(folder / name)
    except BaseException:
        unnamed.unlink(missing_ok=True)
        raise
    return name, size, found


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _packed(manifest: Manifest) -> bytes:
    lines = [
        {"file": name, "bytes": size, "sha256": found, "sizes": dict(sizes)}
        for (name, size, found), sizes in zip(manifest.files, manifest.sizes, strict=True)
    ]
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "ranks": manifest.ranks,
        "nodes": manifest.nodes,
        "graph": manifest.graph,
        "parts": lines,
    }
    return (json.dumps(whole, indent=1) + "\n").encode()


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
    files = tuple((str(x["file"]), int(x["bytes"]), str(x["sha256"])) for x in lines)
    sizes = tuple({name: int(x["sizes"][name]) for name in DTYPES} for x in lines)
    ranks, nodes = int(whole["ranks"]), int(whole["nodes"])
    if len(files) != ranks or ranks < 1:
        raise ValueError(f"{len(files)} parts for {ranks} ranks")
    if any(Path(name).name != name for name, _, _ in files):
        raise ValueError("a part lies in another folder")
    return Manifest(ranks, nodes, str(whole["graph"]), files, sizes)


def load(folder: Path, rank: int, *, ranks: int | None = None, graph: str | None = None) -> Part:
    """The part of a rank, as it was saved; `ranks` and `graph` are as for `read_manifest`.

    Raises:
        OSError: the manifest or the part cannot be read.
        BadPartition: as `read_manifest` does, or the part is not the file that was written.
        ValueError: there is no such rank.
    """
    manifest = read_manifest(folder, ranks=ranks, graph=graph)
    if not 0 <= rank < manifest.ranks:
        raise ValueError(f"rank: {rank}, and they are 0 to {manifest.ranks - 1}")
    name, size, sha256 = manifest.files[rank]
    path = folder / name
    if (found := path.stat().st_size) != size:
        raise BadPartition(
            f"{path} has {found} bytes, and {size} were written: it is cut or changed"
        )
    if _sha256(path) != sha256:
        raise BadPartition(f"{path} is not the file that was written: its SHA-256 is another")
    try:
        return _part(path, rank, manifest)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BadPartition(f"{path} is no part of this partition: {error}") from error


def _part(path: Path, rank: int, manifest: Manifest) -> Part:
    with np.load(path, allow_pickle=False) as archive:
        numbers = {name: int(archive[name]) for name in NUMBERS}
        arrays: dict[str, NDArray[Any]] = {name: archive[name] for name in DTYPES}
    wanted = {"rank": rank, "ranks": manifest.ranks, "nodes": manifest.nodes}
    if numbers != wanted:
        raise ValueError(f"it has {numbers}, not {wanted}")
    for name, dtype in DTYPES.items():
        if arrays[name].dtype != dtype or arrays[name].shape != (manifest.sizes[rank][name],):
            raise ValueError(f"its {name} has another type or length")
    return Part(rank, manifest.ranks, manifest.nodes, **arrays)
