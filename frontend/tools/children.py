"""Work done in a process of its own, so that times and memory are not those of its neighbours.

A child is a module with `if __name__ == "__main__": children.serve(work)`. The parent sends it
JSON objects, and each comes back answered; what libraries print does not disturb this, for the
answers have a pipe of their own.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from .memory import available, resident

_ANSWERS = "GNNC_ANSWER_DESCRIPTOR"
_REFUSED = "refused"
_NO_MEMORY = "no memory"

WATCH_SECONDS = 0.05
"""How often the memory of a child at work is looked at."""
RESERVE = 512 << 20
"""What the machine keeps: a child that leaves less than this to all others is ended."""

Message = dict[str, Any]


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
        self._answers = os.fdopen(read)

    @property
    def process(self) -> int:
        """The number that the system has for it."""
        return self._process.pid

    def ask(self, question: Message) -> Message:
        """Sends one object and waits for the answer; raises ChildFailed when there is none
        (OutOfMemory where that is why), and Refused where the child's work did."""
        assert self._process.stdin is not None
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            answer = ""
        else:
            if self._limit is not None:
                self._watch(self._limit)
            answer = self._answers.readline()
        if not answer:
            status = self._process.wait()
            raise ChildFailed(f"{self._module} ended with status {status}; see its message above")
        found = json.loads(answer)
        if _REFUSED in found:
            raise Refused(found[_REFUSED])
        if _NO_MEMORY in found:
            raise OutOfMemory(found[_NO_MEMORY])
        return found

    def _watch(self, limit: int) -> None:
        """Waits until there is an answer to read; raises OutOfMemory past the limit."""
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
    with os.fdopen(int(os.environ[_ANSWERS]), "w") as answers:
        for line in sys.stdin:
            try:
                answer = work(json.loads(line))
            except Refused as error:
                answer = {_REFUSED: str(error)}
            except MemoryError as error:
                print(json.dumps({_NO_MEMORY: str(error)}), file=answers, flush=True)
                return
            print(json.dumps(answer), file=answers, flush=True)
