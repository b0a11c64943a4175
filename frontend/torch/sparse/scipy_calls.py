"""Calls with matrices of SciPy, which are torch's to what is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .matrix import of_torch


class OnlyScipys(Exception):
    """What is traced asks for what only the matrix of SciPy itself can tell."""


class ScipyCalls:
    """How one callable takes matrices of SciPy: as torch's, with which a layer computes that SciPy
    knows nothing of; or as they are, where its code uses what only SciPy's have."""

    def __init__(
        self, fn: Callable[..., Any], may_be_eager: bool, tell: Callable[[str], None]
    ) -> None:
        self.fn, self.may_be_eager, self.tell = fn, may_be_eager, tell
        self.as_they_are = False

    def __call__(self, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What `run` gives for torch's matrices; what the callable itself gives for SciPy's where
        that fails and this does not."""
        if self.as_they_are:
            return self.fn(*args, **kwargs)
        try:
            given, named = of_torch((args, kwargs))
            return run(*given, **named)
        except Exception as error:
            if not self.may_be_eager:
                raise
            try:
                out = self.fn(*args, **kwargs)
            except Exception as own:
                raise own if isinstance(error, OnlyScipys) else error from None
            cause = (str(error) or type(error).__name__).splitlines()[0]
            self.tell(f"runs eagerly on a matrix of SciPy, torch's has not all it uses: {cause}")
        self.as_they_are = True
        return out
