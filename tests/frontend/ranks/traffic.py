"""What ranks that are threads send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnnc.runtime.ranks.peers import Channel
from gnnc.runtime.ranks.virtual import Virtual
from gnnc.runtime.ranks.waiting import Pending


def counting(sent: list[int]) -> Callable[[Virtual], Virtual]:
    """Adds the bytes of the rows that each rank sends to its place in `sent`; a `wrap` of
    `virtual.run`."""

    def wrap(inner: Virtual) -> Virtual:
        plain = inner.carry

        def carry(sends: Any, receives: Any, channel: Channel, *rest: Any) -> Pending:
            if channel == Channel.EXCHANGE:
                sent[inner.rank] += sum(len(x) for _, x in sends)
            return plain(sends, receives, channel, *rest)

        inner.carry = carry  # type: ignore[method-assign]
        return inner

    return wrap
