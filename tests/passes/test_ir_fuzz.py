"""Whatever a program is changed into, it is taken or refused with a message: no part of the
compiler raises anything else, and none hangs."""

import pytest

from .ir_fuzz import Hang, check, in_time, mutant, run

FEW = 200
MANY = range(FEW, 24_200, 200)


def check_seeds(seeds: range) -> dict[str, int]:
    """How often each part refused a mutant ("": nobody did)."""
    ends: dict[str, int] = {}
    for seed in seeds:
        try:
            for end in check(seed):
                ends[end] = ends.get(end, 0) + 1
        except Exception as error:
            raise AssertionError(f"seed {seed} is not refused:\n{mutant(seed)}") from error
    return ends


def test_a_diagnostic_or_nothing():
    ends = check_seeds(range(FEW))
    # changes reach every part: some are not seen by the parser, some are no error at all
    assert min(ends.get(part, 0) for part in ("parser", "verifier", "autodiff", "")) > 0, ends


@pytest.mark.long
@pytest.mark.parametrize("first", MANY)
def test_many_more(first):
    check_seeds(range(first, first + FEW))


def test_a_hang_is_seen():
    with pytest.raises(Hang, match="nothing came back in 0.05 s"), in_time(0.05):
        while True:
            pass


def test_who_refuses():
    assert run("func.func @f( {", ()) == "parser"
    text = "func.func @f(%N : !inter.set<N>, %x : !inter.rows<M, f32>) { func.return }"
    assert run(text, ()) == "verifier"
