"""Sums over ranks by kernels on the emulator, which read what all ranks publish: the bits of the
carrier's, on every rank."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.check import parse_module
from gnnc.frontend.compiler import artifact_of
from gnnc.passes.targets.cuda import EMULATED
from gnnc.runtime.carrier import Alone
from gnnc.runtime.cuda.nvrtc import compile_device
from gnnc.runtime.memory import Region
from gnnc.runtime.program import DTYPES, Program
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import SharedExchanges, exchanges

from ..compiled import Case, after
from ..ranks import Rank, on_ranks
from .emulated import FINE, ORDERS, in_order

KINDS = ("sum", "max", "min", "mul")
MESSAGES = (
    f"fuse-traversals{{target=cuda}},split-long-rows{{target=cuda}},{FINE.format()},gang-small,"
    "cut-stages,plan-memory"
)
PUBLISHED = f"publish-totals,{MESSAGES}"
BUFFERS = {"one": ("", ""), "few": ("5x", ""), "long": ("64x80x", ""), "rows": ("3x", "W")}
"""A number, short and long single rows, and rows that all ranks have: their dimensions, and the set
that they lie on."""


def copied(name: str, by: str, source: str, target: str, elem: str) -> str:
    """A nest that copies rows."""
    dims = BUFFERS[name][0]
    row = f"vector<{dims}{elem}>" if dims else elem
    return f"""
  intra.traverse %i in %{by} {{
    %v = intra.load %{source}[%i] : {row}
    intra.store %v, %{target}[%i]
  }}"""


def text(elem: str) -> str:
    """Every kind of reduction of every buffer, what a kind reduces in one message."""
    named: list[str] = []
    body: list[str] = []
    for kind in KINDS:
        for name, (dims, on) in BUFFERS.items():
            of = f", domain = #intra.domain<{on}>" if on else ""
            braces = f" {{{of[2:]}}}" if on else ""
            t, x = f"memref<?x{dims}{elem}>", f"{name}_{kind}"
            named.append(f'%in_{x} = intra.input {{buffer = "in_{x}"{of}}} : {t}')
            named.append(f'%{x} = intra.output {{buffer = "{x}"{of}}} : {t}')
            named.append(f"%t_{x} = intra.alloc{braces} : {t}")
            body.append(copied(name, "n" if on else "one", f"in_{x}", f"t_{x}", elem))
    for kind in KINDS:
        every = ", ".join(f"%t_{name}_{kind}" for name in BUFFERS)
        body.append(f'\n  intra.all_reduce {every} {{kind = "{kind}"}}')
    for kind in KINDS:
        for name, (_, on) in BUFFERS.items():
            by = "n" if on else "one"
            body.append(copied(name, by, f"t_{name}_{kind}", f"{name}_{kind}", elem))
    return f"""
func.func @structure(%W : !inter.set<W>) {{
  func.return
}}
func.func @forward() attributes {{intra.phase}} {{
  %n = intra.size {{domain = #intra.domain<W>}} : index
  %one = intra.size : index
  {"".join(f"{line}{chr(10)}  " for line in named)}{"".join(body)}
  func.return
}}
"""


@functools.cache
def cases(elem: str) -> tuple[Case, Case]:
    """By publications, and by messages."""
    lowered = parse_module(text(elem))
    modules = [after(lowered, passes) for passes in (PUBLISHED, MESSAGES)]
    published, messages = (Case(lowered, m, Program(artifact_of(m, EMULATED))) for m in modules)
    return published, messages


def drawn(elem: str, rows: int, rank: int) -> dict[str, Any]:
    """What a rank adds, with numbers that are none and integers that overflow among it."""
    rng = np.random.default_rng(rank)
    values: dict[str, Any] = {"W": SetVal(rows)}
    for name, (dims, on) in BUFFERS.items():
        shape = (rows if on else 1, *(int(n) for n in dims.split("x") if n))
        for kind in KINDS:
            if elem.startswith("f"):
                x = rng.standard_normal(shape) * 10.0 ** rng.integers(-20, 20, shape)
                x[rng.random(shape) < 0.05] = np.inf
                x[rng.random(shape) < 0.05] = np.nan
            else:
                x = rng.integers(np.iinfo(DTYPES[elem]).min, np.iinfo(DTYPES[elem]).max, shape)
            values[f"in_{name}_{kind}"] = x.astype(DTYPES[elem])
    return values


def bits(found: dict[str, Any]) -> dict[str, Any]:
    """All of it as integers, of what is no number that alone."""
    out: dict[str, Any] = {}
    for name, x in found.items():
        plain = np.where(x != x, np.float64("nan").astype(x.dtype), x) if x.dtype.kind == "f" else x
        out[name] = plain.view(f"i{x.dtype.itemsize}")
    return out


@pytest.mark.parametrize("rows", [4, 0])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("elem", ["f32", "f64", "i32", "i64"])
def test_totals_have_the_bits_of_messages(elem: str, ranks: int, rows: int) -> None:
    published, messages = cases(elem)

    def work(c: Communicator) -> tuple[dict[str, Any], dict[str, Any]]:
        values, carrier = drawn(elem, rows, c.rank), exchanges(c, {})
        return published.run(values, carrier=carrier), messages.run(values, carrier=carrier)

    found = virtual.run(ranks, work)
    (first, *_) = (bits(got) for got, _ in found)
    for got, want in found:
        for name, x in bits(want).items():
            np.testing.assert_array_equal(bits(got)[name], x, err_msg=name)
            np.testing.assert_array_equal(bits(got)[name], first[name], err_msg=name)


def test_what_is_one_message_is_one_publication_and_small_rows_one_launch() -> None:
    published, _ = cases("f64")
    called: list[list[str]] = []

    def one(k: int, rank: Rank) -> None:
        called.append(rank.called)
        published.run(drawn("f64", 4, k), carrier=rank)

    on_ranks([{}, {}], one)
    assert called == [["publish totals", "retire totals"]] * 2, "four kinds lie behind each other"
    assert any(name.endswith("_gang") for name in published.program.data["kernels"])


def test_the_order_of_threads_changes_no_bit() -> None:
    published, _ = cases("f32")

    def run() -> list[dict[str, Any]]:
        return virtual.run(
            3, lambda c: bits(published.run(drawn("f32", 4, c.rank), carrier=exchanges(c, {})))
        )

    first = run()
    for order in ORDERS:
        with in_order(published, order):
            for a, b in zip(run(), first, strict=True):
                assert all(a[name].tobytes() == b[name].tobytes() for name in b), order


def test_one_rank_alone() -> None:
    values = drawn("f64", 4, 0)
    got = cases("f64")[0].run(values, carrier=Alone())
    for name, x in got.items():
        np.testing.assert_array_equal(x, values[f"in_{name}"], err_msg=name)


@pytest.mark.parametrize("fenced", [True, False])
def test_nobody_goes_on_while_others_read_its_numbers(fenced: bool) -> None:
    """Rank 0 spoils what it has published as soon as it may; rank 1 reads it late."""

    class Spoiling(SharedExchanges):
        def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
            self.shown = list(buffers)
            found = super().publish(plan, buffers)
            time.sleep(0.5 * self.communicator.rank)
            return found

        def retire(self, plan: str) -> None:
            if fenced:
                super().retire(plan)
            if self.communicator.rank == 0:
                for region in self.shown:
                    ctypes.memset(region.address, 0xFF, region.size)

    published, messages = cases("i64")

    def work(c: Communicator) -> tuple[dict[str, Any], dict[str, Any]]:
        values = drawn("i64", 4, c.rank)
        want = messages.run(values, carrier=exchanges(c, {}))
        return published.run(values, carrier=Spoiling(c, {})), want

    for rank, (got, want) in enumerate(virtual.run(2, work)):
        for name in (f"{buffer}_sum" for buffer in BUFFERS):
            same = np.array_equal(got[name], want[name])
            assert same == (fenced or rank == 0), f"{name} on rank {rank}"


def test_what_a_carrier_raises_ends_the_phase() -> None:
    class Broken(Rank):
        def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
            super().publish(plan, buffers)
            raise TimeoutError("nobody told")

    published, _ = cases("f64")

    def one(k: int, rank: Rank) -> list[str]:
        broken = Broken(rank.me, rank.queues, rank.plans)
        with pytest.raises(TimeoutError, match="nobody told") as caught:
            published.run(drawn("f64", 4, k), carrier=broken)
        assert caught.value.__notes__ == ["in @forward: publication 0, of totals over all ranks"]
        return broken.called

    assert on_ranks([{}, {}], one) == [["publish totals"]] * 2


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_gpus_compiler_takes_it_without_spills(arch: str) -> None:
    for elem in ("f32", "i64"):
        found = compile_device(cases(elem)[0].program.data["device"], arch).kernels
        assert all(not kernel.spill_stores for kernel in found.values())
