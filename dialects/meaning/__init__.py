"""What the dialects mean, in NumPy: the oracle that passes and printers are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .inter import run
    from .world import SetVal

__all__ = ["SetVal", "run"]


def __getattr__(name: str) -> object:
    if name == "run":
        from .inter import run

        return run
    if name == "SetVal":
        from .world import SetVal

        return SetVal
    raise AttributeError(f"module {__name__} has no attribute {name}")
