"""Where Dynamo leaves a graph and goes on in another, or gives a function up: it only logs that."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOGGER = "torch._dynamo.symbolic_convert.__graph_breaks"
_PLACE = re.compile(r"in user code at (.+:\d+)")
_CAUSE = re.compile(r"^(?:Graph Break Reason: )?(.+)\n\s+Explanation:", re.MULTILINE)
_RAISED = re.compile(
    r"(?:got|raised exception) NotImplementedError\(['\"](.+?)['\"]\)$", re.MULTILINE
)
_UNKNOWN = re.compile(
    r"^(Could not guard on data-dependent expression .+?) \(unhinted", re.MULTILINE
)


@contextmanager
def told(tell: Callable[[str], None]) -> Iterator[None]:
    """Calls `tell` for each graph break inside, with its place and cause. What the user has asked
    torch to log is logged as ever."""
    logger = logging.getLogger(_LOGGER)
    level, wanted = logger.level, logger.isEnabledFor(logging.DEBUG)

    def notice(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if place := _PLACE.search(message):
            tell(_description(place.group(1), message))
        return wanted

    logger.addFilter(notice)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeFilter(notice)
        logger.setLevel(level)


def _description(place: str, message: str) -> str:
    around = ", with the function around it" if "Skipping the function" in message else ""
    cause = _CAUSE.search(message) or _UNKNOWN.search(message)
    raised = _RAISED.search(message)
    if raised:
        why = raised.group(1)
    else:
        why = cause.group(1) if cause else "TORCH_LOGS=graph_breaks tells why"
    return f"Dynamo cannot trace {place}, which runs in torch{around}: {why}"
