"""All records of the vocabulary by name."""

from __future__ import annotations

from . import activations, arithmetic, elementary, logic, trigonometric
from .record import PointwiseSpec

POINTWISE: dict[str, PointwiseSpec] = {
    spec.name: spec
    for family in (arithmetic, elementary, trigonometric, activations, logic)
    for spec in family.RECORDS
}
"""Every pointwise function by name, in a fixed order."""
