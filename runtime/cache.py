"""Files under content hashes in the user's cache directory, safe for many processes at once.

Every entry carries the SHA-256 of its own content in its last bytes, so one atomic rename publishes
content and checksum together; an entry that is cut short or altered is seen before it is used,
removed and made again. (A trailer behind an ELF file is ignored by the loader.) Entries live in a
directory that only this user may enter, because a shared object in it is code that will run. The
directory is kept below ``GNNC_CACHE_LIMIT`` bytes (default 1 GiB): when it grows past that, the
entries that were used least recently go first.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_MAGIC = b"\ngnnc-sha256:"
_TRAILER = len(_MAGIC) + 64
_private: Path | None = None


class CacheError(RuntimeError):
    """The cache directory belongs to someone else or is not a directory."""


def directory() -> Path:
    """The directory of entries (mode 0700), made when needed.

    It is ``objects`` under ``$GNNC_CACHE``, else under ``$XDG_CACHE_HOME/gnnc``, else under
    ``~/.cache/gnnc``. Where that cannot be written a directory for this process alone is used, with
    a warning.
    """
    place = _root() / "objects"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
    except OSError as error:
        return _process_directory(place, error)
    info = place.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise CacheError(
            f"{place} is not a directory: remove it, or set GNNC_CACHE to another place"
        )
    if info.st_uid != os.geteuid():
        raise CacheError(
            f"{place} belongs to another user, who could change what runs: "
            "set GNNC_CACHE to a directory of your own"
        )
    if info.st_mode & 0o077:
        place.chmod(0o700)
    if not os.access(place, os.W_OK | os.X_OK):
        return _process_directory(place, PermissionError("not writable"))
    return place


def _root() -> Path:
    for variable, below in (("GNNC_CACHE", ""), ("XDG_CACHE_HOME", "gnnc")):
        if value := os.environ.get(variable):
            return Path(value).expanduser().absolute() / below
    return Path.home() / ".cache" / "gnnc"


def _process_directory(place: Path, error: OSError) -> Path:
    global _private
    if _private is None or not _private.is_dir():
        _private = Path(tempfile.mkdtemp(prefix="gnnc-"))
        warnings.warn(
            f"the cache {place} cannot be used ({error}), so compiled code is kept in {_private} "
            "for this process only: set GNNC_CACHE to a directory that can be written",
            stacklevel=3,
        )
    return _private


def seal(data: bytes) -> bytes:
    """`data` followed by its checksum."""
    return data + _MAGIC + hashlib.sha256(data).hexdigest().encode()


def unseal(blob: bytes) -> bytes | None:
    """The data of a sealed entry, or None where it is damaged."""
    data, trailer = blob[:-_TRAILER], blob[-_TRAILER:]
    return data if trailer == _MAGIC + hashlib.sha256(data).hexdigest().encode() else None


def publish(path: Path, data: bytes) -> None:
    """Write `data`, sealed, and rename it to `path` in one step: a reader sees the old entry, the
    new one or none.
    """
    write(path, seal(data))
    _trim(path.parent)


def write(path: Path, blob: bytes) -> None:
    """Put `blob` at `path` in one step."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(blob)
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def lookup(path: Path) -> bytes | None:
    """The data of the entry at `path`; None where there is none, or where it is damaged (it is then
    removed).
    """
    try:
        blob = path.read_bytes()
    except FileNotFoundError:
        return None
    data = unseal(blob)
    # the time of last use decides what _trim removes; another process may have removed the entry by
    # now
    with suppress(FileNotFoundError):
        if data is None:
            path.unlink()
        else:
            os.utime(path)
    return data


@contextmanager
def exclusive(path: Path) -> Generator[None]:
    """One process, and one thread of it, at a time makes `path`, so that others wait for its result
    rather than repeat the work.

    256 lock files serve all entries; holding two at once is not allowed (it could deadlock).
    """
    with open(path.parent / f"{path.name[:2]}.lock", "w") as file:
        # a file system without locks costs a second compilation, nothing else
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def get_bytes(key: str) -> bytes | None:
    """The artifact stored under `key` (any text), or None. The data is plain bytes: store JSON
    text, never pickles.
    """
    return lookup(_artifact(key))


def get_or_make(key: str, make: Callable[[], bytes]) -> bytes:
    """The artifact stored under `key`, or what `make` gives, which is then stored: made once where
    ranks, processes or threads of one, ask for it at the same time. `make` must not come here."""
    path = _artifact(key)
    if (known := lookup(path)) is None:
        with exclusive(path):
            if (known := lookup(path)) is None:
                known = make()
                publish(path, known)
    return known


def put_bytes(key: str, data: bytes) -> None:
    """Store `data` under `key`; a later process reads it with :func:`get_bytes`."""
    publish(_artifact(key), data)


def _artifact(key: str) -> Path:
    return directory() / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def limit() -> int:
    """The largest size of the cache in bytes (``GNNC_CACHE_LIMIT``)."""
    text = os.environ.get("GNNC_CACHE_LIMIT", "")
    if text and not text.isdigit():
        raise ValueError(f"GNNC_CACHE_LIMIT must be a number of bytes, got {text!r}")
    return int(text) if text else 1 << 30


def _trim(place: Path) -> None:
    """Remove the entries used least recently, each with its source, until the directory is within
    its limit.
    """
    entries: list[tuple[float, int, Path]] = []
    for path in place.iterdir():
        if path.suffix == ".lock":  # empty, and perhaps held
            continue
        with suppress(FileNotFoundError):
            info = path.stat()
            entries.append((info.st_mtime, info.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries)[
        :-8
    ]:  # the newest stay, also those of processes at work right now
        if total <= limit():
            return
        with suppress(FileNotFoundError):
            path.unlink()
        total -= size
