"""Rows of other ranks in kernels, on the emulator: as messages, read where they lie, and in
pipelines of all shapes, which give what the interpreter gives."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.lowered import run_lowered
from gnnc.frontend.compiler import artifact_of
from gnnc.passes.targets.cuda import EMULATED
from gnnc.runtime.cuda.nvrtc import compile_device
from gnnc.runtime.memory import Region
from gnnc.runtime.program import Program

from ..compiled import Case, after
from ..ranks import Rank, on_ranks, parts
from ..test_exchange import DST, MODULE, NODES, OWNER, PLANS, SRC, TEXT, VALUES
from .emulated import FINE, ORDERS, in_order

BEFORE = "fuse-traversals{target=cuda}"
BEHIND = f"{FINE.format()},cut-stages,plan-memory"
MESSAGES = ["start halo", "wait halo", "sum 1", "max 1", "start back", "wait back"]
READ = ["publish halo", "retire halo", "sum 1", "max 1", "publish back", "retire back"]


def compiled(passes: str, text: str = TEXT) -> Case:
    """A program on the emulator."""
    lowered = parse_module(text)
    module = after(lowered, f"{passes},{BEHIND}")
    return Case(lowered, module, Program(artifact_of(module, EMULATED)))


def built(text: str = TEXT, **numbers: int) -> Case:
    """The program with pipelines of these numbers."""
    options = " ".join(f"{k}={v}" for k, v in numbers.items())
    return compiled(f"publish-rows,{BEFORE},build-pipeline{{{options}}}", text)


@functools.cache
def wanted() -> list[dict[str, Any]]:
    """What the interpreter gives."""
    return on_ranks(PLANS, lambda k, rank: run_lowered(MODULE, VALUES[k], rank))


def run(case: Case, values: Any = VALUES, plans: Any = PLANS) -> tuple[list[Any], list[list[str]]]:
    """What ranks give, and what each asked of its carrier."""
    called: list[list[str]] = []

    def one(k: int, rank: Rank) -> dict[str, Any]:
        called.append(rank.called)
        return case.run(values[k], carrier=rank)

    return on_ranks(plans, one), called


def check(got: list[dict[str, Any]], want: list[dict[str, Any]]) -> None:
    for a, b in zip(got, want, strict=True):
        for name in b:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-9, err_msg=name)


X = np.concatenate([v["x"] for v in VALUES])


def kernels(case: Case) -> list[str]:
    return [k for k in case.program.data["kernels"] if k.endswith("_pipeline")]


def test_messages_between_kernels() -> None:
    got, called = run(compiled(BEFORE))
    check(got, wanted())
    assert called == [MESSAGES, MESSAGES]


def test_rows_that_are_read_where_they_lie() -> None:
    case = compiled(f"publish-rows,{BEFORE}")
    got, called = run(case)
    check(got, wanted())
    assert called == [READ, READ] and not kernels(case)


def test_a_pipeline_of_both_groups_and_one_of_the_way_back() -> None:
    case = built()
    got, called = run(case)
    check(got, wanted())
    assert called == [READ, READ] and len(kernels(case)) == 2


SHAPES = list(itertools.product((1, 3), (1, 2), (1, 2), (1, 2), (2, 3)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("local", "remote", "pairs", "warps", "depth"),
    [SHAPES[k] for k in (0, 5, 11, 18, 24, 31)] + [(32, 32, 16, 16, 2), (16, 1, 1, 1, 16)],
)
def test_pipelines_of_all_shapes_give_the_same(
    local: int, remote: int, pairs: int, warps: int, depth: int
) -> None:
    case = built(local=local, remote=remote, pairs=pairs, warps=warps, depth=depth)
    check(run(case)[0], wanted())


def test_the_order_of_threads_changes_no_bit() -> None:
    case = built(local=2, remote=1, depth=3)
    first = run(case)[0]
    for order in ORDERS:
        with in_order(case, order):
            for a, b in zip(run(case)[0], first, strict=True):
                assert all(a[name].tobytes() == b[name].tobytes() for name in b), order


@pytest.mark.parametrize("width", [1, 31, 33, 602])
def test_rows_of_all_widths(width: int) -> None:
    text = TEXT.replace("x3xf64", f"x{width}xf64").replace("<3xf64", f"<{width}xf64")
    x = np.random.default_rng(1).standard_normal((NODES, width))
    values, plans = parts(SRC, DST, OWNER, x, 2)
    module = parse_module(text)
    want = on_ranks(plans, lambda k, rank: run_lowered(module, values[k], rank))
    case = built(text)
    check(run(case, values, plans)[0], want)
    assert len(kernels(case)) == 2


def test_rows_that_fit_no_registers_are_read_without_a_pipeline() -> None:
    wide = TEXT.replace("x3xf64", "x9001xf64").replace("<3xf64", "<9001xf64")
    assert not kernels(built(wide))


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_numbers_of_ranks(ranks: int) -> None:
    """One has no rows of others, and one of four no rows at all."""
    owner = np.sort(np.random.default_rng(2).integers(0, ranks, NODES))
    if ranks == 4:
        owner[owner == 2] = 3
    values, plans = parts(SRC, DST, owner, X, ranks)
    want = on_ranks(plans, lambda k, rank: run_lowered(MODULE, values[k], rank))
    check(run(built(local=2, remote=2), values, plans)[0], want)


def test_a_carrier_of_messages_is_refused() -> None:
    class Mail:
        start, wait, all_reduce = Rank.start, Rank.wait, Rank.all_reduce

    case = built()
    with pytest.raises(ValueError, match="read each other's rows, and a Mail carries messages"):
        case.run(VALUES[0], carrier=Mail())


class Broken(Rank):
    """Rows of others are nowhere to be found."""

    def publish(self, plan: str, buffers: Sequence[Region]) -> list[list[Region]]:
        super().publish(plan, buffers)
        raise TimeoutError("nobody told")


def test_what_a_carrier_raises_ends_the_phase() -> None:
    def one(k: int, rank: Rank) -> list[str]:
        broken = Broken(rank.me, rank.queues, rank.plans)
        with pytest.raises(TimeoutError, match="nobody told") as caught:
            case.run(VALUES[k], carrier=broken)
        assert caught.value.__notes__ == ["in @forward: publication 0, of plan 'halo'"]
        return broken.called

    case = built()
    assert on_ranks(PLANS, one) == [["publish halo"]] * 2, "no kernel and no carrier is asked then"


OF_ARGUMENTS = TEXT.replace(
    "%v = intra.load %e[%j]", "%v = intra.load %x[%j]"
)  # what others read is an argument itself


@pytest.mark.parametrize("fenced", [True, False])
def test_nobody_goes_on_while_others_read_its_rows(fenced: bool) -> None:
    """Rank 0 spoils its rows as soon as it may; rank 1 reads them late."""

    class Spoiling(Rank):
        def places(self, plan: str, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            found = super().places(plan, rows)  # the last that is asked before rows are read
            time.sleep(0.5 * self.me)
            return found

        def retire(self, plan: str) -> None:
            if fenced:
                super().retire(plan)
            if self.me == 0 and plan == "halo":
                values[0]["x"][...] = np.nan

    values = [{**v, "x": v["x"].copy()} for v in VALUES]
    case = built(OF_ARGUMENTS)
    module = parse_module(OF_ARGUMENTS)
    want = on_ranks(PLANS, lambda k, rank: run_lowered(module, VALUES[k], rank))

    def one(k: int, rank: Rank) -> dict[str, Any]:
        return case.run(values[k], carrier=Spoiling(rank.me, rank.queues, rank.plans))

    y = on_ranks(PLANS, one)[1]["y"]
    assert np.allclose(y, want[1]["y"]) == fenced


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_gpus_compiler_takes_it_without_spills(arch: str) -> None:
    kernels = compile_device(built().program.data["device"], arch).kernels
    pipelines = {k: found for k, found in kernels.items() if k.endswith("_pipeline")}
    assert len(pipelines) == 2
    assert all(not found.spill_stores for found in pipelines.values())
