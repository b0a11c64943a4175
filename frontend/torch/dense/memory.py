"""The memory of a graph of Dynamo's in which dense batches become rows: what is the same memory in
torch is none any more, and so an edit in place has to be one of a tensor that nobody reads by
another view."""

from __future__ import annotations

from collections.abc import Container

from torch import Tensor, fx

from ..importer.errors import Reject, Unsupported
from ..importer.memory.aliases import Aliases
from ..importer.memory.edits import check_operands
from ..importer.memory.effects import written
from ..importer.memory.history import (
    GradModes,
    check_edits,
    is_unrecorded_view,
    reason_to_keep,
)
from ..retraced import example_of
from .values import NotByRows


class Memory:
    """What edits do to the memory of a graph.

    Raises:
        NotByRows: backward needs numbers from before an edit, or gnnc does not know the edit.
    """

    def __init__(self, graph: fx.Graph, modes: GradModes) -> None:
        self.modes = modes
        try:
            self.aliases = Aliases(graph)
            check_edits(graph, self.aliases)
        except Unsupported as error:
            raise NotByRows(error.reason) from error

    def is_edited(self, x: fx.Node, since: fx.Node | None = None) -> bool:
        """Whether somebody edits the tensor, at any time or after a node."""
        edits = [e for k in self.aliases.memory(x) for e in self.aliases.edits.get(k, ())]
        return any(since is None or self._after(e, since) for e in edits)

    def check_view(self, node: fx.Node) -> None:
        """Raises NotByRows where a view under no_grad takes part in autograd all the same."""
        if is_unrecorded_view(node, self.aliases, self.modes):
            raise NotByRows("a view made under no_grad of what has a gradient")

    def check_edit_of_rows(self, node: fx.Node, base: fx.Node) -> None:
        """Raises NotByRows where the edit that a node makes of a dense batch is more than another
        value of it."""
        reason = reason_to_keep(node, base, self.aliases, self.modes)
        if reason is not None:
            raise NotByRows(reason)
        try:
            check_operands(node, self.aliases)
        except Reject as error:
            raise NotByRows(str(error)) from error
        if _overlaps(example_of(base)):
            raise NotByRows("an edit of numbers that are several places at once")
        if any(x is not base for x in self._read_later(node)):
            raise NotByRows("an edit of what other views show")

    def check_edit(self, node: fx.Node, dense: Container[fx.Node]) -> None:
        """Raises NotByRows where an edit of a tensor should be seen in what is, or was, `dense`."""
        if any(x in dense and x not in written(node) for x in self._read_later(node)):
            raise NotByRows("an edit of what rows show")

    def _read_later(self, node: fx.Node) -> list[fx.Node]:
        """The nodes from before an edit with its memory which somebody reads after it."""
        alike = {x for base in written(node) for x in self.aliases.alike(base)}
        before = (x for x in alike if self._after(node, x))
        return [x for x in before if any(self._after(u, node) for u in x.users)]

    def _after(self, x: fx.Node, node: fx.Node) -> bool:
        return self.aliases.order[x] > self.aliases.order[node]


def _overlaps(x: object) -> bool:
    """Whether a tensor has the same memory at several places of a dimension. (Torch refuses the
    edit, but not of a stand-in.)"""
    return isinstance(x, Tensor) and any(type(step) is int and step == 0 for step in x.stride())
