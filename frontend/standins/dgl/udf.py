"""What a user's message, reduce and apply functions are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from .topology import EType


class EdgeBatch:
    """Some edges of one type: `src`, `dst` and `data` have features with one row an edge."""

    def __init__(
        self,
        ids: Callable[[], tuple[Tensor, Tensor, Tensor]],
        size: int,
        etype: EType,
        src: Mapping[str, Tensor],
        data: Mapping[str, Tensor],
        dst: Mapping[str, Tensor],
    ):
        self._ids, self._size, self._etype = ids, size, etype
        self.src, self.data, self.dst = src, data, dst

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sources, targets and ids of the edges."""
        return self._ids()

    def batch_size(self) -> int:
        """How many edges there are."""
        return self._size

    def __len__(self) -> int:
        return self.batch_size()

    @property
    def canonical_etype(self) -> EType:
        """The type of the edges."""
        return self._etype


class NodeBatch:
    """Some nodes of one type: `data` has features with one row a node.

    `mailbox` has messages of shape `(nodes, degree, ..)` in a reduce function, and is None in an
    apply function.
    """

    def __init__(
        self,
        nodes: Tensor,
        ntype: str,
        data: Mapping[str, Tensor],
        mailbox: Mapping[str, Tensor] | None = None,
    ):
        self._nodes, self._ntype = nodes, ntype
        self.data, self.mailbox = data, mailbox

    def nodes(self) -> Tensor:
        """The ids of the nodes."""
        return self._nodes

    def batch_size(self) -> int:
        """How many nodes there are."""
        return self._nodes.shape[0]

    def __len__(self) -> int:
        return self.batch_size()

    @property
    def ntype(self) -> str:
        """The type of the nodes."""
        return self._ntype
