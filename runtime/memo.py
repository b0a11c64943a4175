"""What was made from a tensor, kept until the tensor changes or dies.

A key holds the address, shape and version counter of every tensor that the value was made from, so
an in-place edit (which raises the counter) makes a new key, and the old entry ages out. Entries
also hang on the life of the tensors' storage, because an address may be used again. torch is not
imported: a tensor is anything with ``data_ptr``, ``shape``, ``stride``, ``dtype`` and ``_version``.

A tensor that was moved to other memory (``tensor.data = other``) keeps its counter, so what was
seen of it before counts no more. Two edits cannot be seen: of what ``tensor.data`` gives and of a
NumPy view, which leave the counter as it is.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

_Made = TypeVar("_Made")
_moves = itertools.count(1)


def version_key(tensor: Any) -> Hashable | None:
    """The identity of a tensor's present content, or None where it has no version counter (NumPy
    arrays, tensors made in inference mode): what is made from it cannot be kept.
    """
    try:
        version = tensor._version
    except (AttributeError, RuntimeError):  # torch raises RuntimeError for inference tensors
        return None
    layout = (tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
    return (tensor.data_ptr(), *layout, version)


def owner_of(tensor: Any) -> object:
    """The object that lives as long as the tensor's memory, whichever views of it come and go."""
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor


class Memo:
    """At most `capacity` values by key, the ones used last; safe for threads.

    A value is dropped when it is the oldest of too many, or when one of its owners dies. A value
    must not refer to its owners, which would keep it alive for ever.
    """

    def __init__(self, capacity: int = 32) -> None:
        if capacity < 1:
            raise ValueError(f"a memo keeps at least one value, got capacity {capacity}")
        self._capacity = capacity
        self._entries: OrderedDict[Hashable, tuple[Any, list[weakref.ref[Any]]]] = OrderedDict()
        self._dead: deque[Hashable] = deque()
        # by id, where each tensor was last seen, and how often it had been moved by then
        self._places: dict[int, tuple[weakref.ref[Any], int, int]] = {}
        self._lock = threading.Lock()

    def get(
        self, key: Hashable | None, owners: Iterable[object], make: Callable[[], _Made]
    ) -> _Made:
        """The value kept under `key`, else what `make` returns, kept as long as the `owners` live.

        With None as key the value is made each time. `make` runs without a lock held, so two
        threads may both make it; all of them get the one that was kept first.
        """
        if key is None:
            return make()
        with self._lock:
            self._purge()
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry[0]
        made = make()
        # callbacks reach this memo weakly, so that long-lived owners do not keep it
        home: weakref.ref[Memo] = weakref.ref(self)
        watch = [weakref.ref(owner, lambda _: _drop(home, key)) for owner in owners]
        with self._lock:
            self._purge()
            kept, _ = self._entries.setdefault(key, (made, watch))
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        self._settle()
        return kept

    def get_for(self, tensors: Iterable[Any], extra: Hashable, make: Callable[[], _Made]) -> _Made:
        """:meth:`get` for a value made from `tensors` and the hashable `extra` only."""
        tensors = list(tensors)
        key = self._key_for(tensors, extra)
        return self.get(key, [] if key is None else map(owner_of, tensors), make)

    def find(self, tensors: Iterable[Any], extra: Hashable) -> Any:
        """What :meth:`get_for` would find; None where there is no value."""
        key = self._key_for(tensors, extra)
        with self._lock:
            self._purge()
            return self._entries[key][0] if key in self._entries else None

    def knows(self, tensors: Iterable[Any], extra: Hashable) -> bool:
        """Whether :meth:`get_for` would find a value."""
        key = self._key_for(tensors, extra)
        with self._lock:
            self._purge()
            return key in self._entries

    def drop_for(self, tensors: Iterable[Any], extra: Hashable) -> None:
        """Forget the value, if there is one: the next :meth:`get_for` makes another."""
        key = self._key_for(tensors, extra)
        with self._lock:
            self._entries.pop(key, None)

    def _key_for(self, tensors: Iterable[Any], extra: Hashable) -> Hashable | None:
        keys = [self._key(tensor) for tensor in tensors]
        return None if None in keys else (*keys, extra)

    def _key(self, tensor: Any) -> Hashable | None:
        """The tensor's version key, with how often it was seen to be moved: in other memory its
        counter says nothing, and the numbers there may have changed meanwhile."""
        key = version_key(tensor)
        if key is None:
            return None
        there, number = tensor.data_ptr(), id(tensor)
        seen = self._places.get(number)
        if seen is not None and seen[0]() is tensor:
            if seen[1] == there:
                return (key, seen[2])
            moves = next(_moves)
            self._places[number] = (seen[0], there, moves)
            return (key, moves)
        places = self._places
        gone = weakref.ref(tensor, lambda _: places.pop(number, None))
        places[number] = (gone, there, 0)
        return (key, 0)

    def values(self) -> list[Any]:
        """What is kept now, the value used last at the end."""
        with self._lock:
            self._purge()
            return [made for made, _ in self._entries.values()]

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        with self._lock:
            self._purge()
            return len(self._entries)

    def _bury(self, key: Hashable) -> None:
        """An owner of `key` died. This may run anywhere, also while this thread holds the lock."""
        self._dead.append(key)
        self._settle()

    def _settle(self) -> None:
        """Remove what died, unless the lock is held: its holder, or the next one, does it then."""
        if self._dead and self._lock.acquire(blocking=False):
            try:
                self._purge()
            finally:
                self._lock.release()

    def _purge(self) -> None:
        while self._dead:
            self._entries.pop(self._dead.popleft(), None)


def _drop(home: weakref.ref[Memo], key: Hashable) -> None:
    memo = home()
    if memo is not None:
        memo._bury(key)  # pyright: ignore[reportPrivateUsage]
