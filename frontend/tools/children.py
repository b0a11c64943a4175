"""Work done in a process of its own, so that times and memory are not those of its neighbours.

A child is a module with `if __name__ == "__main__": children.serve(work)`. The parent sends it
JSON objects, and each comes back answered; what libraries print does not disturb this, for the
answers have a pipe of their own. Work that takes long may tell of its progress on the way
(`serve_with_progress`): those messages go through the same pipe, before the answer.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from .memory import available, resident

_ANSWERS = "GNNC_ANSWER_DESCRIPTOR"
_REFUSED = "refused"
_NO_MEMORY = "no memory"
_PROGRESS = "progress"
_CHUNK = 1 << 16

WATCH_SECONDS = 0.05
"""How often the memory of a child at work is looked at."""
RESERVE = 512 << 20
"""What the machine keeps: a child that leaves less than this to all others is ended."""

Message = dict[str, Any]
Tell = Callable[[Message], None]
"""Takes a message on progress."""


class ChildFailed(Exception):
    """A child ended without an answer; its own error is on standard error."""


class OutOfMemory(ChildFailed):
    """A child ended because it needed more memory than it was allowed, or than there is."""


class Refused(Exception):
    """What was asked for cannot be done, for a reason that the message tells the user.

    Raised by the child's work, and again by `Child.ask`; the child goes on.
    """


class Child:
    """A running child; use as a context manager, which ends it.

    A child with a `memory_limit`, in bytes, is ended when its resident memory passes it while it
    works on a question. (A limit on the address space would not do: what torch maps and what it
    uses are far apart.) `environment` is added to that of this process.
    """

    def __init__(
        self,
        module: str,
        *,
        memory_limit: int | None = None,
        environment: Mapping[str, str] | None = None,
    ):
        read, write = os.pipe()
        self._module = module
        self._limit = memory_limit
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            pass_fds=[write],
            env={**os.environ, **(environment or {}), _ANSWERS: str(write)},
            text=True,
        )
        os.close(write)
        self._answers = os.fdopen(read, "rb", buffering=0)
        self._unread = b""

    @property
    def process(self) -> int:
        """The number that the system has for it."""
        return self._process.pid

    def ask(self, question: Message, tell: Tell | None = None) -> Message:
        """Sends one object and waits for the answer; `tell` gets what the child tells meanwhile.

        Raises:
            ChildFailed: there is no answer (OutOfMemory where that is why).
            Refused: the child's work did.
        """
        assert self._process.stdin is not None
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            self._fail()
        while _PROGRESS in (found := self._next()):
            if tell is not None:
                tell(found[_PROGRESS])
        if _REFUSED in found:
            raise Refused(found[_REFUSED])
        if _NO_MEMORY in found:
            raise OutOfMemory(found[_NO_MEMORY])
        return found

    def _next(self) -> Message:
        """The child's next message."""
        while b"\n" not in self._unread:
            if self._limit is not None:
                self._watch(self._limit)
            read = self._answers.read(_CHUNK)
            if not read:
                self._fail()
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def _fail(self) -> NoReturn:
        status = self._process.wait()
        raise ChildFailed(f"{self._module} ended with status {status}; see its message above")

    def _watch(self, limit: int) -> None:
        """Waits until there is something to read; raises OutOfMemory past the limit."""
        while not select.select([self._answers], [], [], WATCH_SECONDS)[0]:
            used, left = resident(self.process), available()
            if used > limit or left < RESERVE:
                self._process.kill()
                self._process.wait()
                why = "its limit" if used > limit else "and left the machine too little"
                raise OutOfMemory(f"took {min(used, limit) / 2**30:.1f} GiB, {why}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._process.terminate()
        self.end()

    def end(self) -> None:
        """Lets the child finish and waits for it; does nothing the second time."""
        if not self._answers.closed:
            self._process.communicate()
            self._answers.close()


def serve(work: Callable[[Message], Message]) -> None:
    """The child's side: answers each question with `work(question)` until there are no more.

    A child whose work raises MemoryError ends: what it holds is in an unknown state.
    """
    serve_with_progress(lambda question, _: work(question))


def serve_with_progress(work: Callable[[Message, Tell], Message]) -> None:
    """`serve` for work that tells the parent of its progress, by the function it is given.

    A child whose parent is gone ends where it tells of something: nobody waits for its answer.
    """
    # Ctrl-C reaches parent and children alike; the parent ends its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(int(os.environ[_ANSWERS]), "w") as answers:

        def send(message: Message) -> None:
            try:
                print(json.dumps(message), file=answers, flush=True)
            except BrokenPipeError:
                os._exit(1)  # at once: an orphan must not go on to write files

        def tell(progress: Message) -> None:
            send({_PROGRESS: progress})

        for line in sys.stdin:
            try:
                answer = work(json.loads(line), tell)
            except Refused as error:
                answer = {_REFUSED: str(error)}
            except MemoryError as error:
                send({_NO_MEMORY: str(error)})
                return
            send(answer)
