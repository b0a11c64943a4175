"""Arguments that a compiled program does not take, where torch may: an index from the end, say."""

from __future__ import annotations

from ..libraries.pyg.bad_index import IndexOutOfRange


class RefusedCall(Exception):
    """A call that a program without a graph for torch has refused, before it has written anything;
    `reason` is what it has against the arguments."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def told_of(reason: Exception) -> str:
    """What a report says of a call that torch has run instead."""
    return f"a call runs in torch: {reason}, which the compiled program does not take"


def with_both_reasons(reason: Exception, error: Exception) -> Exception:
    """What is raised where torch refuses a call too: of torch's type, with the program's reason,
    which names the argument."""
    told = str(error).partition("\n")[0]
    # where torch stood is part of its message
    in_pyg = isinstance(reason, IndexError) and "torch_geometric" in str(error)
    kind = IndexOutOfRange if in_pyg and type(error) is RuntimeError else type(error)
    return kind(f"{reason} (torch: {told})")
