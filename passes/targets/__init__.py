"""The targets, one record a file. A new one has a line in `TARGETS`."""

from __future__ import annotations

from xdsl.utils.exceptions import PassFailedException

from .cuda import BUILT, CUDA, EMULATED
from .openmp import OPENMP
from .record import Nests, Target
from .reference import REFERENCE

__all__ = ["DEFAULT", "TARGETS", "Nests", "Target", "target_named", "target_of"]

TARGETS: dict[str, Target] = {t.name: t for t in (OPENMP, CUDA, EMULATED, BUILT, REFERENCE)}
"""Every target by name."""

DEFAULT = OPENMP.name
"""The target of whoever names none: the option of every pass that has one."""


def target_named(name: str) -> Target:
    """The record of a target.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in TARGETS:
        raise ValueError(f"there is no target {name!r}: the targets are {', '.join(TARGETS)}")
    return TARGETS[name]


def target_of(pass_name: str, name: str) -> Target:
    """The record that a pass is asked to work for.

    Raises:
        PassFailedException: there is none of that name.
    """
    try:
        return target_named(name)
    except ValueError as error:
        raise PassFailedException(f"{pass_name}: {error}") from error
