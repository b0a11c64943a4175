"""Whether kernels read rows of other ranks where they lie, or have messages."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from ....passes.targets import target_named
from ....runtime.memory import Exporting
from ....runtime.program import memory_of
from ....runtime.ranks.communicator import Communicator
from ....runtime.ranks.reachable import why_unreachable
from ....runtime.ranks.world import world
from ...compiler import Options

_found: WeakKeyDictionary[Communicator, tuple[str, str | None]] = WeakKeyDictionary()
"""For a rank that is a process: who runs programs, and why these cannot read rows of other ranks,
which all ranks have found out together."""


def find_out(options: Options, device: str) -> None:
    """Find out whether kernels of programs with these options can read rows of other ranks, where
    ranks are processes. All ranks call it, when the graph is cut: later on some may compile when
    others do not.
    """
    communicator = world()
    if communicator.shares_memory:
        return
    target = target_named(options.on(device).target)
    memory = memory_of(target.runtime, device) if target.remote_reads else None
    refused = f"programs for the target {target.name} read none"
    given = memory if isinstance(memory, Exporting) else refused
    _found[communicator] = target.runtime, why_unreachable(communicator, target.runtime, given)


def are_chosen(name: str, note: Callable[[str], None]) -> bool:
    """Whether programs for the target of this name read rows of other ranks; `note` is told why, if
    the target has a choice."""
    communicator, target = world(), target_named(name)
    if communicator.shares_memory:
        return True
    if not target.remote_reads:
        return False
    runtime, why_not = _found.get(communicator, ("", None))
    if runtime != target.runtime:
        why_not = f"gnnc.distribute was not asked for programs for the target {target.name}"
    if why_not is None:
        note("kernels read rows of other ranks where they lie")
        return True
    note(f"rows of other ranks come by messages through the host: {why_not}")
    return False
