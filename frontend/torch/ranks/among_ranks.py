"""What compiling is like for one rank of several."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from xdsl.utils.exceptions import DiagnosticException

from ....passes.driver.pipelines import Between
from ....runtime.ranks.world import world
from ...compiler import Options
from ..capture.drawing_code import draws_where_it_failed
from ..capture.failures import UNTRACEABLE
from ..capture.graph_breaks import in_full
from ..importer.errors import Unsupported, own_place
from ..importer.memory.effects import RANDOM, call_of
from ..optimizers import NotOneStep
from . import cut_tensors, remote_reads, whole_graph

DRAWN = (
    "Over several ranks numbers are drawn by dropout, edges by dropout_edge without "
    "force_undirected and pairs by negative_sampling of num_nodes: draw others before "
    "gnnc.distribute"
)
COMPILE_PATIENCE = 600.0
"""Seconds that ranks wait for one that compiles."""


def among_ranks(options: Options) -> Options:
    """The options for calls of one rank of several: nothing is decided by its own rows and calls,
    and nothing runs in torch instead, which knows these alone."""
    return options if world().size == 1 else replace(options, fullgraph=True)


def one_program(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, which says why a rank of several needs what Dynamo cannot trace to be otherwise.
    Ranks trace at their own pace: until the program begins others wait as for a compiler."""
    if world().size == 1:
        return call

    @functools.wraps(call)
    def telling(*args: Any, **kwargs: Any) -> Any:
        try:
            with world().until_call("trace a call", COMPILE_PATIENCE):
                return call(*args, **kwargs)
        except UNTRACEABLE as error:
            cause = in_full(str(error).strip().split("\n")[0])
            said = (
                "over several ranks a call is one program, for torch knows the rows of one alone, "
                f"and Dynamo cannot trace this call: {cause}"
            )
            if draws_where_it_failed(error):
                said = f"{said}. {DRAWN}"
            raise Unsupported(None, f"{said}{_place(error)}") from error

    return telling


def _place(error: Exception) -> str:
    """Where in the user's code tracing ended, where that is known."""
    frames = [(f.filename, str(f.lineno)) for f in getattr(error, "real_stack", None) or ()]
    place = own_place(frames)
    return f" ({place})" if place else ""


def between(options: Options, chunks: int, note: Callable[[str], None]) -> Between:
    """How rows come from other ranks in programs that are made here, which `note` is told where
    there is a choice. Who wants them in several chunks wants work to go on beside messages."""
    if whole_graph.are_taken():
        return "built"
    if options.remote_reads and remote_reads.are_chosen(options.target, note):
        return "reads"
    return "copies" if world().on_one_machine and chunks == 1 else "messages"


@contextmanager
def compiling(args: Sequence[Any]) -> Generator[None]:
    """What a rank does meanwhile, for the others that wait for it. What is refused names the
    parameters among the arguments of a call that are sharded, and says what may be drawn."""
    with world().stage("compile", COMPILE_PATIENCE):
        try:
            yield
        except (Unsupported, NotOneStep, DiagnosticException) as error:
            names = ", ".join(cut_tensors.parameters(args))
            if names:
                verb = "are" if "," in names else "is"
                said = f"{error}. {names} {verb} sharded: a rank reads rows of nodes there"
                error.args = (said, *error.args[1:])
            if world().size > 1 and _draws(error):
                error.args = (f"{error}. {DRAWN}", *error.args[1:])
            raise


def _draws(error: Exception) -> bool:
    """Whether what is refused is an op that draws numbers."""
    node = error.node if isinstance(error, Unsupported) else None
    return node is not None and call_of(node).op in RANDOM
