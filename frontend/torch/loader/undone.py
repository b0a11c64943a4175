"""`gnnc.loader.undone`: steps that are run to measure them, and shall not have trained."""

from __future__ import annotations

import copy
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def undone(*trained: Any) -> Generator[None]:
    """What runs in the `with` leaves models, optimizers and the CPU's random numbers as they were.

    Gradients are not put back: a step clears them before it trains.

    Args:
        trained: objects with `state_dict` and `load_state_dict`.

    Raises:
        TypeError: an object has no such state.
    """
    for each in trained:
        if not (hasattr(each, "state_dict") and hasattr(each, "load_state_dict")):
            raise TypeError(f"trained: a {type(each).__name__} has no state_dict to go back to")
    before = [copy.deepcopy(each.state_dict()) for each in trained]
    try:
        with torch.random.fork_rng(devices=()):
            yield
    finally:
        for each, state in zip(trained, before, strict=True):
            each.load_state_dict(state)
