"""Where Dynamo leaves a graph and goes on in another, or gives a function up: it only logs that."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch._dynamo.types as dynamo_types

from ..importer.errors import is_ours, place_outside

_LOGGER = "torch._dynamo.symbolic_convert.__graph_breaks"
_PLACE = re.compile(r"in user code at (.+:\d+)")
_CAUSE = re.compile(r"^(?:Graph Break Reason: )?(.+)\n\s+Explanation:", re.MULTILINE)
_RAISED = re.compile(
    r"(?:got|raised exception) NotImplementedError\(['\"](.+?)['\"]\)$", re.MULTILINE
)
_UNKNOWN = re.compile(
    r"(Could not (?:guard on|extract specialized \w+ from) data-dependent expression .+?)"
    r" \(unhinted"
)
_IN_FULL = {
    "Data-dependent branching": "a branch on what a tensor holds (`if (x < 0).any():`), which only "
    "running tells",
}
"""What is said of causes that Dynamo names in a word."""

_STACK = "User code traceback:"


_GIVEN_UP = "Skipping the function"
_RAISES = "Observed exception"


class Raising:
    """A callable that raised while it was traced.

    Dynamo gives up a function that raises: all later calls would run eagerly, also those that do
    not raise and what was compiled for them. Here they are traced again, unless the exception came
    of tracing alone (the call ends without it), or there were too many.
    """

    def __init__(self) -> None:
        self.seen = False
        self._left = 16

    def met(self, failure: Any) -> None:
        """Dynamo gives up a function for `failure`, which is under way."""
        self.seen = True
        if self._left and hasattr(failure, "frame_exec_strategy"):
            self._left -= 1
            action = dynamo_types.FrameAction.DEFAULT
            failure.frame_exec_strategy = dynamo_types.FrameExecStrategy(action, action)

    def ended(self, raised: bool) -> None:
        """The call that was traced has ended."""
        self.seen = False
        if not raised:
            self._left = 0


@contextmanager
def told(tell: Callable[[str], None], raising: Raising) -> Iterator[None]:
    """Calls `tell` for each graph break inside, with its place and cause; `raising` learns of
    exceptions. What the user has asked torch to log is logged as ever."""
    logger = logging.getLogger(_LOGGER)
    level, wanted = logger.level, logger.isEnabledFor(logging.DEBUG)

    def notice(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if _GIVEN_UP in message and _RAISES in message:
            raising.met(sys.exc_info()[1])
        if place := _PLACE.search(message):
            tell(_description(_users(place.group(1), message), message))
        return wanted

    logger.addFilter(notice)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeFilter(notice)
        logger.setLevel(level)


def _users(place: str, message: str) -> str:
    """Where the user's code is, or a library's, that calls a function of ours at `place`."""
    _, told, stack = message.partition(_STACK)
    return place_outside(stack) if told and is_ours(place) else place


def in_full(cause: str) -> str:
    """What Dynamo says of a cause, in words where that is one."""
    return _IN_FULL.get(cause, cause)


def first_line(error: BaseException) -> str:
    """What an error of Dynamo's says first, with the place in the user's code if it names one."""
    text = str(error).strip()
    unknown = _UNKNOWN.search(text)
    says = unknown.group(1) if unknown else (text.splitlines() or [type(error).__name__])[0]
    says = in_full(says)
    _, told, stack = text.partition("from user code:")
    return f"{says} ({place_outside(stack)})" if told and "File" in stack else says


def _description(place: str, message: str) -> str:
    around = ", with the function around it" if _GIVEN_UP in message else ""
    cause = _CAUSE.search(message) or _UNKNOWN.search(message)
    raised = _RAISED.search(message)
    if raised:
        why = raised.group(1)
    else:
        why = cause.group(1) if cause else "TORCH_LOGS=graph_breaks tells why"
        why = in_full(why)
    return f"Dynamo cannot trace {place}, which runs in torch{around}: {why}"
