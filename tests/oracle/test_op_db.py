"""Every op with a rule gives what torch gives on the samples of torch's operator database, or is
told to run in torch."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from . import command  # noqa: E402
from .embed import EMBEDDINGS, programs  # noqa: E402
from .outcomes import Outcome, compiled, interpreted, outcome, together  # noqa: E402
from .samples import Case, cases, database, dtypes, error_cases, has_rule, variants  # noqa: E402

PARTS = 8


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def told(found: Sequence[Outcome]) -> str:
    return "\n\n".join(str(o) for o in found)


def ops(part: int) -> list[Any]:
    return [op for op in database().values() if has_rule(op)][part::PARTS]


def drawn(op: Any, draw: int) -> tuple[Case, str] | None:
    """A sample of an op and an embedding, the same at every call."""
    number = zlib.crc32(f"{op.full_name} {draw}".encode())
    some = [(d, v) for d in dtypes(op) for v in variants(op)]
    if not some:  # complex numbers alone
        return None
    dtype, variant = some[number % len(some)]
    found = list(cases(op, dtype, variant))
    # half of them on rows, which is what rules are for
    embedding = ("rows", "rows", "rows", *EMBEDDINGS[1:])[number // 7 % 6]
    return (found[number // 3 % len(found)], embedding) if found else None


@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_sample_of_each_op(part: int):
    wrong = []
    for op in ops(part):
        if (choice := drawn(op, 0)) and (found := programs(*choice)):
            o = outcome(found, interpreted, sizes=2)  # its own and no rows
            wrong += [o] if o.wrong else []
    assert not wrong, told(wrong)


def test_some_are_compiled():
    chosen = [c for op in ops(0)[::2] if (c := drawn(op, 1))]
    found = [p for c in chosen if (p := programs(*c))]
    imported = [o.program for p in found if (o := outcome(p, interpreted)).status == "equal"]
    wrong = [o for o in together(imported) if o.wrong]
    assert not wrong, told(wrong)


def test_errors_are_those_of_torch():
    wrong = []
    for op in ops(1) + ops(5):
        for case in list(error_cases(op))[:1]:
            for p in programs(case, "plain"):
                o = outcome([p], compiled)
                wrong += [o] if o.wrong else []
    assert not wrong, told(wrong)


@pytest.mark.long
@pytest.mark.parametrize("part", range(16))
@pytest.mark.parametrize("kind", ["--compiled", "--errors"])
def test_every_sample(part: int, kind: str, capsys: pytest.CaptureFixture[str]):
    status = command.main([kind, f"--part={part}/16"])
    assert status == 0, capsys.readouterr().out
