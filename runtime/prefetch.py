"""Items that threads make ahead of their use, given out in order.

No more than a fixed number of them is finished or under way. Threads know nothing of the iterator
that gives the items out, so that one nobody uses any more is collected, which ends them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Prefetched(Iterator[T], Generic[T]):
    """`make(0)`, `make(1)`, .. up to `count`, made by threads.

    An error is raised in place of its item, as it was raised in the thread, with that trace; then
    there are no more items.

    Args:
        make: may be called by several threads at a time.
        workers: how many threads.
        ahead: how many items are finished or under way at most; at least 1.
        begin: what each thread does first; an error of it is that of the next item.
    """

    def __init__(
        self,
        make: Callable[[int], T],
        count: int,
        workers: int,
        ahead: int,
        begin: Callable[[], object] | None = None,
    ) -> None:
        if workers < 1 or ahead < 1:
            raise ValueError(f"workers and ahead must be at least 1, got {workers} and {ahead}")
        self._work: _Work[T] = _Work(make, count, ahead, begin)
        self._process = os.getpid()
        self._threads = [
            threading.Thread(target=self._work.run, name=f"gnnc-loader-{i}", daemon=True)
            for i in range(min(workers, count))
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # there can be no more threads: those that run would wait for ever
            self._work.end()
            raise
        # at the end of the process before its modules go, which a thread may be using
        self.close: Callable[[], Any] = weakref.finalize(
            self, _end, self._work, self._threads, self._process
        )

    def __iter__(self) -> Prefetched[T]:
        return self

    def __next__(self) -> T:
        if os.getpid() != self._process:
            raise RuntimeError(
                "this iterator of batches was made before a fork: its threads are in the parent "
                "process. Iterate over the loader anew"
            )
        try:
            return self._work.next()
        except BaseException:  # also Ctrl-C while it waits: threads must not outlive the loop
            self.close()
            raise


class _Work(Generic[T]):
    """What threads and iterator share."""

    def __init__(
        self,
        make: Callable[[int], T],
        count: int,
        ahead: int,
        begin: Callable[[], object] | None,
    ) -> None:
        self._make, self._count, self._ahead = make, count, ahead
        self._begin_thread = begin
        self._changed = threading.Condition()
        self._made: dict[int, T | _Failure] = {}
        self._begun = 0
        self._given = 0
        self._ended = False

    def run(self) -> None:
        """A thread: makes items while there are some to make, and room for them."""
        first = self._begin_thread
        while (number := self._begin()) is not None:
            try:
                if first is not None:
                    first()
                    first = None
                item: T | _Failure = self._make(number)
            except BaseException as error:
                error.add_note(f"This was raised in a thread of the loader, by batch {number}.")
                item = _Failure(error)
            with self._changed:
                self._made[number] = item
                self._changed.notify_all()
            del item  # or it would live until the next one is made

    def _begin(self) -> int | None:
        with self._changed:
            self._changed.wait_for(self._may_begin)
            if self._ended or self._begun == self._count:
                return None
            self._begun += 1
            return self._begun - 1

    def _may_begin(self) -> bool:
        room = self._begun < self._given + self._ahead
        return self._ended or self._begun == self._count or room

    def next(self) -> T:
        with self._changed:
            number = self._given
            if self._ended or number == self._count:
                raise StopIteration
            self._changed.wait_for(lambda: number in self._made)
            item = self._made.pop(number)
            self._given += 1
            self._changed.notify_all()
        if isinstance(item, _Failure):
            raise item.error
        return item

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._made.clear()
            self._changed.notify_all()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _end(work: _Work[Any], threads: list[threading.Thread], process: int) -> None:
    """Ends the threads and waits for the items they are at."""
    if os.getpid() != process:
        return  # a fork has no threads of its parent, and may have their lock
    work.end()
    # one of the threads may collect the iterator, while it has the lock that others need to end
    if threading.current_thread() not in threads:
        for thread in threads:
            thread.join()
