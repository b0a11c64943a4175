"""cut-stages changes no meaning, whatever the width of vectors."""

import pytest

from gnnc.dialects.intra.rows import StageOp
from gnnc.dialects.meaning.check import same_meaning

from ..lowered import INFER, TRAIN, after, nests
from ..programs import PROGRAMS as LAYERS
from ..random_programs import Drawer
from ..small_programs import PROGRAMS as SMALL

LOWERED = "lower-to-intra,fuse-traversals,split-long-rows,update-in-place"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("width", (16, 64))
@pytest.mark.parametrize("name", LAYERS)
def test_the_meaning_stays(name, width):
    module = after(LAYERS[name], f"{TRAIN},{LOWERED},schedule{{vector-bytes={width}}}")
    same_meaning(module, after(module, "cut-stages"), seeds=range(1))


@pytest.mark.parametrize("name", SMALL)
def test_every_nest_is_cut(name):
    module = after(SMALL[name], f"{INFER},{LOWERED},schedule")
    cut = after(module, "cut-stages")
    same_meaning(module, cut, seeds=range(2))
    for nest in nests(cut, "forward"):
        nest.check_cut()


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    module = after(Drawer(seed, 16).module(), f"{TRAIN},{LOWERED},schedule")
    cut = after(module, "cut-stages")
    same_meaning(module, cut, seeds=range(2))
    assert any(isinstance(op, StageOp) for op in cut.walk())
