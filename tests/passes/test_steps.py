"""Passes keep their hands off what goes on between two steps of a kind that they do not know."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import InterpretationError, PassFailedException, VerifyException

from gnnc.dialects.intra.bindings import AllocOp, InputOp
from gnnc.dialects.intra.steps import sections, steps
from gnnc.dialects.meaning.intra import run_phase
from gnnc.dialects.meaning.lowered import random_values, run_lowered, structure
from gnnc.frontend.targets import printed
from gnnc.passes.targets import TARGETS

from .exchange import ExchangeFunctions, StartOp, WaitOp, exchange
from .lowered import INFER, after, nests, phase

TEXT = """
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, 3xf64>) -> !inter.rows<N, 3xf64> {
  %sent = inter.relu %x : !inter.rows<N, 3xf64>
  %got = inter.neg %sent : !inter.rows<N, 3xf64>
  %a = inter.sin %x : !inter.rows<N, 3xf64>
  %b = inter.cos %a : !inter.rows<N, 3xf64>
  %c = inter.add %b, %got : !inter.rows<N, 3xf64>
  %d = inter.exp %c : !inter.rows<N, 3xf64>
  func.return %d : !inter.rows<N, 3xf64>
}
"""
"""The second step can be an exchange that is awaited before the fifth."""

UPDATE = """
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, 3xf64>)
    -> (!inter.rows<N, 3xf64>, !inter.rows<N, 3xf64> {inter.update = "x"}) {
  %got = inter.neg %x : !inter.rows<N, 3xf64>
  %half = inter.const 0.5 : !inter.rows<unit, f64>
  %new = inter.mul %x, %half : !inter.rows<N, 3xf64>
  %d = inter.exp %got : !inter.rows<N, 3xf64>
  func.return %d, %new : !inter.rows<N, 3xf64>, !inter.rows<N, 3xf64>
}
"""
"""What the exchange reads is updated meanwhile."""


def lowered(text: str = TEXT) -> ModuleOp:
    return after(text, f"{INFER},lower-to-intra")


def exchanging(text: str = TEXT, which: int = 1, until: int = 4) -> ModuleOp:
    """The same program with an exchange in the place of one nest."""
    module = lowered(text)
    order = nests(module)
    exchange(order[which], order[until])
    module.verify()
    return module


def results(module: ModuleOp, plain: ModuleOp) -> tuple[dict, dict]:
    """What a program with an exchange gives, and the one without."""
    values = random_values([plain], np.random.default_rng(0), {"N": 5})
    world, rows = structure(module, values)
    return run_phase(phase(module), world, {**values, **rows}, ExchangeFunctions), run_lowered(
        plain, values
    )


def same(module: ModuleOp, plain: ModuleOp) -> bool:
    got, want = results(module, plain)
    return all(np.array_equal(got[name], x) for name, x in want.items())


def kinds(module: ModuleOp) -> list[str]:
    return [type(step).__name__.removesuffix("Op") for step in steps(phase(module))]


def test_what_the_exchange_means() -> None:
    assert same(exchanging(), lowered())


def test_nothing_is_fused_across() -> None:
    """Without the exchange one nest is left; with it one before it, one during, one after."""
    fused = after(exchanging(), "fuse-traversals")
    assert len(nests(after(lowered(), "fuse-traversals"))) == 1
    assert kinds(fused) == ["Traverse", "Start", "Traverse", "Wait", "Traverse"]
    assert same(fused, lowered())


def test_what_is_sent_is_not_deleted() -> None:
    """No nest reads it."""
    fused = after(exchanging(), "fuse-traversals")
    (start,) = [s for s in steps(phase(fused)) if isinstance(s, StartOp)]
    assert any(start.source in nest.writes() for nest in nests(fused))


@pytest.mark.parametrize("before", ["", "fuse-traversals,"])
def test_what_is_under_way_keeps_its_memory(before: str) -> None:
    """Two buffers are in use all through the exchange, and so is what is written meanwhile."""
    planned = after(exchanging(), f"{before}plan-memory")
    order = steps(phase(planned))
    lives = {op.result: op.lives for op in planned.walk() if isinstance(op, AllocOp)}
    (start,) = [s for s in order if isinstance(s, StartOp)]
    (wait,) = [k for k, s in enumerate(order) if isinstance(s, WaitOp)]
    for buffer in (start.source, start.target):
        found = lives[buffer]
        assert found is not None and found.first <= order.index(start) and wait <= found.last
    assert same(planned, lowered())


def test_memory_is_free_again_after_the_wait() -> None:
    planned = after(exchanging(), "plan-memory")
    order = steps(phase(planned))
    (start,) = [s for s in order if isinstance(s, StartOp)]
    (wait,) = [k for k, s in enumerate(order) if isinstance(s, WaitOp)]
    sent = start.source.owner
    assert isinstance(sent, AllocOp) and sent.lives is not None and sent.lives.last == wait


def test_an_argument_is_not_overwritten_while_it_is_sent() -> None:
    def in_place(module: ModuleOp) -> bool:
        done = after(module, "update-in-place")
        return any(isinstance(op, InputOp) and op.gives is not None for op in done.walk())

    assert in_place(lowered(UPDATE))
    assert in_place(exchanging(UPDATE, 0, 1))  # awaited before the update
    assert not in_place(exchanging(UPDATE, 0, 2))


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_without_the_step_names_it(target: str) -> None:
    module = after(exchanging(), "fuse-traversals,plan-memory,schedule,cut-stages")
    message = rf"exchange\.start in @forward: the target {target} has no such step"
    with pytest.raises(PassFailedException, match=message):
        printed(module, TARGETS[target])


def test_an_interpreter_names_the_step_that_it_does_not_know() -> None:
    module = exchanging()
    values = random_values([module], np.random.default_rng(0), {"N": 5})
    with pytest.raises(InterpretationError, match=r"exchange\.start"):
        run_lowered(module, values)


@pytest.mark.parametrize("name", ["fuse-traversals", "plan-memory", "update-in-place"])
def test_an_op_that_is_no_step_is_refused(name: str) -> None:
    module = lowered(UPDATE)
    Rewriter.insert_op(test.TestOp([]), InsertPoint.before(nests(module)[0]))
    with pytest.raises(VerifyException, match=r"test\.op in @forward is no step"):
        after(module, name)


def test_sections() -> None:
    order = steps(phase(exchanging()))
    assert [type(s) for s in order if not s.may_move] == [StartOp, WaitOp]
    assert list(sections(order).values()) == [0, 0, 1, 1, 1, 2, 2]
