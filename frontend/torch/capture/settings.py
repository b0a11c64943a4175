"""Dynamo's settings, set for the time of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch._dynamo

Set = Callable[[], Callable[[], None]]
"""Sets settings, and gives what sets them back."""


def setter(**settings: Any) -> Set:
    """What sets these. torch's own takes twice as long, for it also has the hash of all settings
    made anew, for caches of what is compiled: these say when to compile, not how. Where torch keeps
    settings in another way than it does now, it is torch's."""
    known: dict[str, Any] = getattr(torch._dynamo.config, "_config", {})
    overrides = [getattr(known.get(name), "user_override", None) for name in settings]
    if not all(hasattr(o, "get") and hasattr(o, "set") for o in overrides):
        return torch._dynamo.config._make_closure_patcher(**settings)
    values = list(settings.values())

    def set_all() -> Callable[[], None]:
        before = [o.get() for o in overrides]
        for o, value in zip(overrides, values, strict=True):
            o.set(value)

        def set_back() -> None:
            for o, value in zip(overrides, before, strict=True):
                o.set(value)

        return set_back

    return set_all
