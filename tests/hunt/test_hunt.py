"""Programs that were found to differ once, and random ones: compiled they are as eager."""

from __future__ import annotations

from pathlib import Path

import pytest

from .hunt import COMPILED_EVERY, program_of
from .judge import judge
from .program import Program

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.py"))
QUICK, LONG = 24, 300
"""How many random programs each run tries."""


def check(program: Program, compiled: bool) -> None:
    differences = judge(program, compiled).differences
    assert not differences, "\n".join(
        [*(f"{d.kind}: {d.detail}" for d in differences), str(program)]
    )


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_found_once(path: Path) -> None:
    program = Program.parse(path.read_text())
    check(program, compiled=program.settings.get("compiled", False))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("seed", range(QUICK))
def test_new(seed: int) -> None:
    random_program(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(QUICK, LONG))
def test_more(seed: int) -> None:
    random_program(seed)


def random_program(seed: int) -> None:
    check(program_of(seed, "interpreted"), compiled=False)
    if seed % COMPILED_EVERY == 0:
        check(program_of(seed, "compiled"), compiled=True)
