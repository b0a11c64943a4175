"""What compiling is like for one rank of several."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from ....runtime.ranks.world import world
from ...compiler import Options

COMPILE_PATIENCE = 600.0
"""Seconds that ranks wait for one that compiles."""


def among_ranks(options: Options) -> Options:
    """The options for calls of one rank of several: nothing is decided by its own rows and calls,
    and nothing runs in torch instead, which knows these alone."""
    if world().size == 1:
        return options
    return replace(options, fullgraph=True)


def compiling() -> AbstractContextManager[None]:
    """What a rank does meanwhile, for the others that wait for it."""
    return world().stage("compile", COMPILE_PATIENCE)
