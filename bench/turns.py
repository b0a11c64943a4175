"""Children that take turns, so that what else the machine does falls on all of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager

from ..frontend.tools.children import Child, ChildFailed, Message, Refused
from ..runtime.cpu.heap import PLAIN_TORCH

OURS = "gnnc"
"""How the names of our own contestants begin."""


def add_threads(parser: argparse.ArgumentParser) -> None:
    """`--threads`, of every contestant."""
    usual = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=int, default=usual, help="of each contestant")


class Turns:
    """Contestants by name. One that fails or refuses is `absent` from then on, with the reason."""

    def __init__(self, children: Mapping[str, Child]) -> None:
        self._children = dict(children)
        self.answers: dict[str, list[Message]] = {name: [] for name in children}
        self.absent: dict[str, str] = {}

    def ask(self, name: str, question: Message) -> Message | None:
        """The answer of one, None where it is out."""
        if name in self.absent:
            return None
        try:
            return self._children[name].ask(question)
        except (ChildFailed, Refused) as error:
            self._children[name].end()
            self.absent[name] = str(error)
            del self.answers[name]
            print(f"{name} is out: {error}", file=sys.stderr)
            return None

    def prepare(self, questions: Mapping[str, Message]) -> dict[str, Message]:
        """Asks each its first question; the answers."""
        found = {name: self.ask(name, q) for name, q in questions.items()}
        return {name: answer for name, answer in found.items() if answer is not None}

    def turn(self, question: Message) -> None:
        """Asks each the same in turn, and keeps the `answers`."""
        for name in list(self.answers):
            if (answer := self.ask(name, question)) is not None:
                self.answers[name].append(answer)


@contextmanager
def turns(module: str, names: Mapping[str, str], threads: int | None = None) -> Generator[Turns]:
    """A child of the module for each name; `names` says of each who it is. Others than gnnc have
    torch and the heap as they are by themselves."""
    with ExitStack() as stack:
        children: dict[str, Child] = {}
        for name, who in names.items():
            environment = {} if who.startswith(OURS) else dict(PLAIN_TORCH)
            if threads is not None:
                environment["OMP_NUM_THREADS"] = str(threads)
            children[name] = stack.enter_context(Child(module, environment=environment))
        yield Turns(children)


def absent_lines(result: Message) -> list[str]:
    """A line below a table for each contestant that is out."""
    absent: dict[str, str] = result["absent"]
    return ["", *(f"{name} is out: {why}" for name, why in absent.items())] if absent else []
