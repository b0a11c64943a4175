"""How rows are reduced: the function of the vocabulary that takes one more, and the beginning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fold:
    """A reduction begins with `start` and takes each further row by `function`; without one the
    further row is the result."""

    function: str | None
    start: float


FOLDS: dict[str, Fold] = {
    "sum": Fold("add", 0.0),
    "mul": Fold("mul", 1.0),
    "max": Fold("maximum", float("-inf")),
    "min": Fold("minimum", float("inf")),
    "last": Fold(None, 0.0),
}
"""By the kind that ops name. An empty group of max and min is 0, whatever it began with."""
