"""Buffers of a module have any size, as its plain attributes: a graph that a model keeps, or its
features, may be exchanged, and their sizes tell rows from widths. Dynamo takes the sizes of buffers
for constants, as those of parameters.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from torch._dynamo import source

_ASKED = "is_from_unspecialized_param_buffer_source"


@contextmanager
def of_any_size() -> Generator[None]:
    """While it holds buffers of users' modules are traced with sizes that may be others; those of
    torch's own modules are as wide as its parameters."""
    plain: Any = getattr(source, _ASKED)
    setattr(source, _ASKED, lambda _: False)  # parameters are known by their type
    try:
        yield
    finally:
        setattr(source, _ASKED, plain)
