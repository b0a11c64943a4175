"""The hunt itself: its programs are what their seeds say, it sees what differs, it shrinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import shrink
from .compare import Difference, compare, raises_alike
from .execute import Observation, Runner, overlap, runner
from .grammar import generate
from .judge import observed
from .poison import observed_with_any_index, observed_without, without
from .program import Argument, Call, Program
from .stated import Context, OtherZeros, PositiveZeros, is_of_an_edited_argument, reason
from .trees import is_dead

TEXTS = {"x": "N 4, leaf", "y": "N 4", "e": "2 E, < N"}
ARGUMENTS = {name: Argument.parse(text) for name, text in TEXTS.items()}


def program(body: str, *calls: Call) -> Program:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    calls = calls or (Call({"N": 3, "E": 5}),)
    return Program(f"def function(x, y, e):\n{lines}", ARGUMENTS, calls, {"seed": 3})


@pytest.mark.parametrize("seed", range(20))
def test_programs_are_text(seed: int) -> None:
    p = generate(seed)
    q = Program.parse(str(p))
    assert str(generate(seed)) == str(p)
    assert (q.arguments, q.calls, q.settings) == (p.arguments, p.calls, p.settings)
    assert str(Program.parse(str(q))) == str(q)


@pytest.mark.parametrize("text", ["N 4, leaf", "2 E, < N", "K, < N, negative", "-, leaf", "number"])
def test_arguments_are_text(text: str) -> None:
    assert str(Argument.parse(text)) == text


def test_most_programs_are_valid() -> None:
    calls = [o for seed in range(60) for o in observed(generate(seed), torch.float64)]
    assert sum(o.raised is None for o in calls) > 0.7 * len(calls)


class PartialEdits(TorchDispatchMode):
    """Notes the edits of a tensor by one that overlaps it in part: no two loops do the same."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = list(zip(func._schema.arguments, args, strict=False))
        tensors = [(a, x) for a, x in given if isinstance(x, Tensor)]
        written = [x for a, x in tensors if a.alias_info is not None and a.alias_info.is_write]
        for x in written:
            if any(overlap(x, y) and where(x) != where(y) for _, y in tensors):
                self.found.append(str(func))
        return func(*args, **(kwargs or {}))


def where(x: Tensor) -> tuple[int, torch.Size, tuple[int, ...]]:
    return x.data_ptr(), x.shape, x.stride()


@pytest.mark.parametrize("seed", [*range(20), 1303])
def test_no_edit_by_what_overlaps_in_part(seed: int) -> None:
    with PartialEdits() as edits:
        observed(generate(seed), torch.float64)
    assert edits.found == []


def test_all_seeds_have_programs() -> None:
    assert generate(1467).calls


DIFFERENT = {
    "result wrong": ("return x * 2", "return x * 3"),
    "result shape": ("return x.sum(0)", "return x.sum(0, keepdim=True)"),
    "result dtype": ("return x.sum()", "return x.float().sum()"),
    "result wrong NaN": ("return x * 0", "return x * float('nan')"),
    "result wrong integers": ("return e + 1", "return e + 2"),
    "gradient wrong": ("return x * 2", "return x + x.detach()"),
    "gradient None or zeros: zeros": ("return (y * 1).requires_grad_()", "return y + 0 * x"),
    "result requires_grad: False, eager True": ("return x * 2", "return (x * 2).detach()"),
    "result contiguous: True, eager False": ("return y.t()", "return y.t().contiguous()"),
    "result overlaps: none, eager y": ("return y[:, 0]", "return y[:, 0].clone()"),
    "result is: none, eager y": ("return y", "return y.view_as(y)"),
    "argument wrong": ("y.add_(1); return x", "return x"),
    "raises nothing, eager IndexError in call": ("return x[7]", "return x[0]"),
    "structure of results": ("return x, y", "return [x, y]"),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_differences_are_seen(kind: str) -> None:
    a, b = (program(text) for text in DIFFERENT[kind])
    want, got = observed(a, torch.float64)[0], observed(b, torch.float64)[0]
    assert compare(want, want, None, 0) == []
    assert kind in [d.kind for d in compare(want, got, None, 0)]


@pytest.mark.parametrize(
    ("after", "name"),
    [
        ("double", "second gradient x"),
        ("between", "gradient of result [1] by result [0]"),
        ("retain", "retained result [0]"),
        ("batched", "gradient x"),
    ],
)
def test_what_is_done_with_results(after: str, name: str) -> None:
    p = program("h = x * x; return h, h.sin()", Call({"N": 3, "E": 0}, after=after))
    (seen,) = observed(p, torch.float64)
    assert seen.raised is None and seen.values[name] is not None


def test_what_is_done_between_calls() -> None:
    sizes = {"N": 3, "E": 4}
    calls = [Call(sizes), Call(sizes, before="again"), Call(sizes, before="data")]
    p = program("return x[e[0]]", *calls)
    mine: Runner = runner(p, p.load(), torch.float64)
    values: list[Any] = [mine.run(k).values["result alone"] for k in range(3)]
    assert torch.equal(values[0], values[1]) and not torch.equal(values[1], values[2])


def test_programs_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to the one statement that an invented bug is about."""

    def fails(p: Program, kind: str, compiled: bool) -> bool:
        seen = observed(p, torch.float64)
        return all(o.raised is None for o in seen) and "tanh(" in p.code

    monkeypatch.setattr(shrink, "still_fails", fails)
    body = "a = x + y; b = a; c = F.relu(b * 2); d = torch.tanh(input=c - 1); return d.sum(0), a"
    p = program(body, Call({"N": 50, "E": 5}, before="hook"), Call({"N": 3, "E": 5}))
    small = shrink.shrink(replace(p, settings={"dtype": "float32", "seed": 3}), "any")
    assert small.code in (
        f"def function({x}):\n    d = torch.tanh(input={x})\n    return d\n" for x in "xy"
    )
    assert small.calls == (Call({"N": 3}, after="none"),)


@pytest.mark.parametrize(("line", "dead"), [(2, True), (3, False), (4, False), (5, True)])
def test_what_is_dead(line: int, dead: bool) -> None:
    """What only dead statements read is dead as well; an edit never is."""
    text = "def f(x):\n    a = x.max(0)\n    b = x * 2\n    b.add_(1)\n    c = a\n    return b\n"
    assert is_dead(text, line) is dead


DEAD = {
    "with torch.no_grad():; .h = x.median(0)": 3,  # in a block
    "h = x[e[0]]; g = torch.ones_like(h); y = y * g": 2,  # of which the shape is read
    "h = x[e[0]]; if h.numel() > 0:; .y = y * 2": 2,
    "h = x[e[0]]; h, g = h.max(0)": 2,  # by another dead one that takes its name
    "h = x[e[0]]; g = h.new_zeros(3).add_(h); k = F.relu6(g, True)": 2,  # by edits of a new one
}
ALIVE = {
    "h = x[e[0]]; g = h * 2; y.add_(g)": 2,  # by an edit
    "h = F.relu(x[e[0]], True)": 2,
    "h = x[e[0]]; g = h.new_zeros(3).add_(h); k = F.relu6(g, True); y = y + g": 2,
    "g = y.new_zeros(3); v = g.view(3); k = g.add_(x[e[0]]); y = y + v": 4,
    "h = torch.add(x, y, out=y)": 2,
    "h = x[e[0]]; if (h > 0).any():; .y = y * 2": 2,
    "h = x[e[0]]; assert (h > 0).all()": 2,
    "with torch.no_grad():; .h = x * 2; y = y * h": 3,
    "h = x[e[0]]": 0,  # in a backward
}


@pytest.mark.parametrize(
    ("body", "line", "dead"),
    [*((b, n, True) for b, n in DEAD.items()), *((b, n, False) for b, n in ALIVE.items())],
)
def test_what_is_dead_in(body: str, line: int, dead: bool) -> None:
    lines = "".join(f"    {s.replace('.', '    ', s[0] == '.')}\n" for s in body.split("; "))
    assert is_dead(f"def f(x, y, e):\n{lines}    return y\n", line) is dead


NEEDLESS = {
    "h = x.max(0).values; g = torch.relu_(h * 2); return y": True,
    "h = x.max(0).values; if len(y) > 2:; .return y + h; return y": False,
    "h = x.max(0).values; if len(y) > 9:; .return y + h; return y": True,
    "h = x.max(0).values; y.add_(h); return y": False,
    "h = x.max(0).values; return y, h": False,
    "h = x.max(0).values; g = h.sum() > 0; y = y * 2 if g else y; return y": False,
}


@pytest.mark.parametrize(("body", "needless"), NEEDLESS.items())
def test_what_nobody_needs_may_be_missing(body: str, needless: bool) -> None:
    lines = "".join(f"    {s.replace('.', '    ', s[0] == '.')}\n" for s in body.split("; "))
    empty = {"x": Argument.parse("P 4"), "y": Argument.parse("N 4")}
    calls = (Call({"N": 3, "P": 0}),)
    p = Program(f"def function(x, y):\n{lines}", empty, calls, {"seed": 3})
    (seen,) = observed(p, torch.float64)
    assert seen.raised == ("call", "IndexError")
    less = without(p, seen.line)
    assert less is not None
    found = observed_without(less, 0, seen.state)
    assert (found is not None and found.raised is None) is needless


def test_modules_with_statistics_are_not_dead() -> None:
    text = (
        "class M:\n  def __init__(self):\n    self.a = nn.BatchNorm1d(4)\n    self.b = nn.Tanh()\n"
    )
    text += "  def forward(self, x):\n    g = self.a(x)\n    h = self.b(x)\n    return x\n"
    assert [is_dead(text, line) for line in (6, 7)] == [False, True]


NO_ROWS = "index_select(): self indexing axis dim should be positive"
OUT_OF_BOUNDS = "index is out of bounds for dimension with size 0"


@pytest.mark.parametrize(
    ("kind", "message", "alike"),
    [
        ("RuntimeError", NO_ROWS, True),
        ("IndexError", "other", True),
        ("RuntimeError", OUT_OF_BOUNDS, False),
        ("RuntimeError", "e[0] is out of bounds", False),
        ("RuntimeError", f"e[0] is 0 (torch: {NO_ROWS})", True),
        ("RuntimeError", f"e[0] is 0 (torch: {OUT_OF_BOUNDS})", False),
    ],
)
def test_which_of_two_bad_indices(kind: str, message: str, alike: bool) -> None:
    eager = Observation(("call", "IndexError"), ["IndexError"], OUT_OF_BOUNDS)
    got = Observation(("call", kind), [kind], message)
    assert raises_alike(eager, got) is alike


ROOT = torch.tensor([1.0, 1e-8], dtype=torch.float64)
"""What an infinite slope made of a rounding error."""


@pytest.mark.parametrize(
    ("eager", "got", "other", "kind", "stated"),
    [
        (ROOT, ROOT + 1e-8, ROOT.float() + 2e-4, "result wrong", True),
        (ROOT, ROOT + 1e-8, ROOT.float(), "result wrong", False),
        (ROOT, ROOT + 1e-3, ROOT.float() + 2e-4, "result wrong", False),
        (ROOT * 0, ROOT * torch.nan, ROOT, "gradient wrong NaN", True),
        (ROOT, ROOT * torch.nan, ROOT, "gradient wrong NaN", False),
        (ROOT * torch.nan, ROOT * 0, ROOT, "gradient wrong NaN", False),
    ],
)
def test_what_numbers_may_differ_in(
    eager: Tensor, got: Tensor, other: Tensor, kind: str, stated: bool
) -> None:
    assert bool(reason(Difference(kind, "y: off", 0), context(eager, got, other, eager))) == stated


def context(*values: Tensor) -> Context:
    eager, got, other, zeros = ([Observation(values={"y": y})] for y in values)
    of_nan = replace(program("return x"), settings={"seed": 3, "values": "nan"})
    return Context(of_nan, eager, got, lambda: other, {"zeros": lambda: zeros})


def test_what_is_added_to_minus_0() -> None:
    of_minus_0, of_0 = torch.tensor([-torch.inf]), torch.tensor([torch.inf])
    found = Difference("result wrong inf", "y: off", 0)
    assert reason(found, context(of_minus_0, of_0, of_minus_0, of_0))
    assert not reason(found, context(of_minus_0, of_0, of_minus_0, of_minus_0))


def test_zeros_are_positive_where_rows_are_added() -> None:
    zeros, none = -torch.zeros(2), torch.zeros(0, dtype=torch.int64)
    with PositiveZeros():
        found = zeros.index_add(0, none, zeros[:0]), zeros.scatter_add_(0, none, zeros[:0])
    assert not any(x.signbit().any() for x in found)


def test_the_larger_of_0_and_minus_0() -> None:
    zeros = torch.zeros(2)
    with OtherZeros():
        found = torch.max(zeros, -zeros), torch.maximum(zeros + 1, zeros)
    assert not torch.equal(found[0].signbit(), torch.max(zeros, -zeros).signbit())
    assert torch.equal(found[1], zeros + 1)


@pytest.mark.parametrize(("what", "stated"), [("p1", True), ("result 0", False)])
def test_edits_that_a_backward_may_refuse(what: str, stated: bool) -> None:
    got = Observation(
        raised=("backward", "RuntimeError"),
        message=f".. by an inplace operation: {what} is at version 2, and the compiled call was ..",
    )
    assert is_of_an_edited_argument(Observation(), got) == stated


@pytest.mark.parametrize(
    ("body", "alike"),
    [
        ("h = x[e[0] + 9]; n = h.size(0); return x * n", True),
        ("h = x[e[0] + 9]; return x * h.size(1), h", False),
        ("h = F.embedding(e[0] - 9, x); return x if h.shape[0] > 3 else h", True),
        ("h = x.relu(); h[e[0] + 9] = 0; return x * h.size(1)", True),
        ("h = x.relu(); h[e[0] + 9] = 0; return x * h.size(1), h", False),
        ("h = x.relu(); g = h[:1]; h.index_fill_(0, e[0] + 9, 0.0); return x, g", False),
    ],
)
def test_shapes_of_what_is_read_or_written_by_any_index(body: str, alike: bool) -> None:
    """What reads shapes alone is the same whatever the rows."""
    p = program(body)
    found = observed_with_any_index(p, 0, {})
    other = observed(program(body.replace("9", "0")), torch.float64)[0]
    assert (not compare(other, found, None, 0)) == alike
