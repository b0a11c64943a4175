"""Work done in a process of its own, so that times and memory are not those of its neighbours.

A child is a module with `if __name__ == "__main__": children.serve(work)`. The parent sends it
JSON objects, and each comes back answered; what libraries print does not disturb this, for the
answers have a pipe of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

_ANSWERS = "GNNC_ANSWER_DESCRIPTOR"
_REFUSED = "refused"

Message = dict[str, Any]


class ChildFailed(Exception):
    """A child ended without an answer; its own error is on standard error."""


class Refused(Exception):
    """What was asked for cannot be done, for a reason that the message tells the user.

    Raised by the child's work, and again by `Child.ask`; the child goes on.
    """


class Child:
    """A running child; use as a context manager, which ends it."""

    def __init__(self, module: str):
        read, write = os.pipe()
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            pass_fds=[write],
            env={**os.environ, _ANSWERS: str(write)},
            text=True,
        )
        os.close(write)
        self._answers = os.fdopen(read)

    def ask(self, question: Message) -> Message:
        """Sends one object and waits for the answer; raises ChildFailed when there is none, and
        Refused where the child's work did."""
        assert self._process.stdin is not None
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            answer = ""
        else:
            answer = self._answers.readline()
        if not answer:
            status = self._process.wait()
            raise ChildFailed(f"{self._module} ended with status {status}; see its message above")
        found = json.loads(answer)
        if _REFUSED in found:
            raise Refused(found[_REFUSED])
        return found

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
        self._process.communicate()
        self._answers.close()


def serve(work: Callable[[Message], Message]) -> None:
    """The child's side: answers each question with `work(question)` until there are no more."""
    with os.fdopen(int(os.environ[_ANSWERS]), "w") as answers:
        for line in sys.stdin:
            try:
                answer = work(json.loads(line))
            except Refused as error:
                answer = {_REFUSED: str(error)}
            print(json.dumps(answer), file=answers, flush=True)
