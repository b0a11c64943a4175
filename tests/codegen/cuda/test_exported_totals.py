"""What is reduced over ranks, read in memory that these export: by threads that have nothing but
handles of each other's memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gnnc.runtime.carrier import Sharing
from gnnc.runtime.emulator.memory import EmulatedMemory
from gnnc.runtime.memory import CannotOpen
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import ExportingExchanges, exchanges

from .exported import exporting, has_right_sums
from .test_totals_of_ranks import bits, cases, drawn


@pytest.mark.parametrize(("ranks", "rows"), [(2, 4), (3, 0)])
def test_totals_have_the_bits_of_messages(ranks: int, rows: int) -> None:
    published, messages = cases("f64")

    def work(c: Communicator) -> tuple[dict[str, Any], dict[str, Any]]:
        values, carrier = drawn("f64", rows, c.rank), exporting(c)
        assert isinstance(carrier, Sharing)
        got = published.run(values, carrier=carrier)
        return got, messages.run(values, carrier=exchanges(c, {}))

    for got, want in virtual.run(ranks, work):
        for name, x in bits(want).items():
            np.testing.assert_array_equal(bits(got)[name], x, err_msg=name)


@pytest.mark.parametrize("fenced", [True, False])
def test_nobody_goes_on_while_others_read_its_memory(fenced: bool) -> None:
    assert virtual.run(2, lambda c: has_right_sums(c, fenced)) == [True, fenced]


def test_kernels_only_read_what_is_open() -> None:
    """The addresses of others' memory are other ones than those that they have it at."""
    published, _ = cases("f64")
    seen: list[list[list[int]]] = []

    class Noting(ExportingExchanges):
        def publish(self, plan: str, buffers: Any) -> Any:
            found = super().publish(plan, buffers)
            seen.append([[region.address for region in of_rank] for of_rank in found])
            own = found[self.communicator.rank]
            assert [r.address for r in own] == [r.address for r in buffers]
            return found

    def work(c: Communicator) -> None:
        published.run(drawn("f64", 4, c.rank), carrier=Noting(c, {}, EmulatedMemory()))

    virtual.run(2, work)
    one, two = seen
    assert all(a != b for k in range(2) for a, b in zip(one[k], two[k], strict=True))


def test_what_cannot_be_opened_is_told_with_its_rank() -> None:
    class Far(EmulatedMemory):
        device = "far"  # what is open is known by device

        def open(self, name: bytes) -> Any:
            raise CannotOpen("no way there")

    published, _ = cases("f64")

    def work(c: Communicator) -> None:
        memory = Far() if c.rank == 1 else EmulatedMemory()
        published.run(drawn("f64", 4, c.rank), carrier=ExportingExchanges(c, {}, memory))

    said = "rank 1 cannot read what rank 0 has published (totals): no way there. gnnc.Options(rem"
    with pytest.raises(CannotOpen, match=re.escape(said)) as caught:
        virtual.run(2, work)
    assert caught.value.__notes__[0] == "in @forward: publication 0, of totals over all ranks"
