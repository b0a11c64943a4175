"""Communicators that are wrong on purpose: tests that pass with them look at nothing."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from gnnc.runtime.ranks.virtual import Virtual


class _Unfenced:
    """An exchange whose end nobody waits for."""

    def __init__(self, exchange: Any) -> None:
        self.exchange = exchange

    def poll(self) -> bool:
        return self.exchange.poll()

    def wait(self) -> None:
        self.exchange.poll()


class WithoutFence(Virtual):
    """Takes rows as received, and memory as sent, before they are."""

    def start(
        self,
        sent: NDArray[Any],
        send_counts: Sequence[int],
        received: NDArray[Any],
        receive_counts: Sequence[int],
        tag: int,
    ) -> Any:
        return _Unfenced(super().start(sent, send_counts, received, receive_counts, tag))


def without_fence(communicator: Virtual) -> WithoutFence:
    """The same rank, broken."""
    communicator.__class__ = WithoutFence
    return communicator  # type: ignore[return-value]
