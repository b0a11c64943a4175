"""What compiling is like for one rank of several."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from xdsl.utils.exceptions import DiagnosticException

from ....passes.driver.pipelines import Between
from ....runtime.ranks.world import world
from ...compiler import Options
from ..importer.errors import Unsupported
from ..optimizers import NotOneStep
from . import cut_tensors, whole_graph

COMPILE_PATIENCE = 600.0
"""Seconds that ranks wait for one that compiles."""


def among_ranks(options: Options) -> Options:
    """The options for calls of one rank of several: nothing is decided by its own rows and calls,
    and nothing runs in torch instead, which knows these alone."""
    if world().size == 1:
        return options
    remote = options.remote_reads and world().shares_memory
    return replace(options, fullgraph=True, remote_reads=remote)


def between(options: Options) -> Between:
    """How rows come from other ranks in programs that are made here."""
    if whole_graph.are_taken():
        return "built"
    return "reads" if options.remote_reads else "messages"


@contextmanager
def compiling(args: Sequence[Any]) -> Generator[None]:
    """What a rank does meanwhile, for the others that wait for it. What is refused names the
    parameters among the arguments of a call that are sharded."""
    with world().stage("compile", COMPILE_PATIENCE):
        try:
            yield
        except (Unsupported, NotOneStep, DiagnosticException) as error:
            names = ", ".join(cut_tensors.parameters(args))
            if names:
                verb = "are" if "," in names else "is"
                said = f"{error}. {names} {verb} sharded: a rank reads rows of nodes there"
                error.args = (said, *error.args[1:])
            raise
