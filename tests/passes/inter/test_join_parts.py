"""join-parts on programs over the rows of ranks: one loop over local and remote edges gives what
two give, forward and backward, together and apart."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.inter.reduce import ReduceOp
from gnnc.dialects.inter.types import set_type
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.signature import body_ops
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.passes.inter.join_parts import join_parts
from gnnc.passes.inter.restrict_rows import restrict_rows

from ..meaning import changed
from ..random_programs import Drawer
from ..ranked import APART, CUT, OPTIMIZED
from .test_partition import ALL, apart, assert_same, function, names, together
from .test_restrict_rows import LAYERS, layer


def check(plain: ModuleOp, cut: ModuleOp, seed: int) -> int:
    """Values and gradients are those of the program on the whole graph; how much is joined."""
    count = join_parts(function(cut))
    cut, whole = changed(cut), changed(plain, AutodiffPass())
    for ranks in (1, 3):
        assert_same(plain, plain, cut, seed, ranks)
        assert_same(plain, whole, changed(cut, AutodiffPass()), seed, ranks)
    for_one = changed(cut, *OPTIMIZED, *APART)
    for run_cut in (together, apart):
        assert_same(plain, whole, for_one, seed, 4, run_cut)
    return count


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", names())
def test_programs(name: str) -> None:
    plain = parse_module(ALL[name])
    check(plain, changed(plain, *CUT), 0)


@pytest.mark.long
@pytest.mark.parametrize("name", names())
def test_programs_on_more_graphs(name: str) -> None:
    plain = parse_module(ALL[name])
    for seed in range(1, 10):
        check(plain, changed(plain, *CUT), seed)


def restricted(plain: ModuleOp) -> ModuleOp:
    """A program over parts, in which whatever is read at some rows only is computed there."""
    cut = changed(plain, *CUT)
    assert restrict_rows(function(cut), share=2.0) > 12
    return changed(cut)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_on_needed_rows(name: str) -> None:
    """Local edges that read an argument whole stay apart from remote ones that read needed rows."""
    plain = parse_module(layer(name))
    assert check(plain, restricted(plain), 0) or name in ("rgat", "sage")


@pytest.mark.parametrize("name", LAYERS)
def test_features_have_one_loop_over_the_edges_of_a_row(name: str) -> None:
    """And their gradients one."""
    cut = changed(parse_module(layer(name)), *CUT)
    assert join_parts(function(cut))
    after = function(changed(cut, *OPTIMIZED))
    sums = [op for op in body_ops(after) if isinstance(op, ReduceOp) and op.type.dims]
    over = [set_type(op.set) for op in sums]
    assert [t.label for t in over if t.part_names and "dst" in t.map_dict()]
    assert not [t.label for t in over if t.label.endswith("_remote")]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    plain = Drawer(seed).module()
    try:
        cut = changed(plain, *CUT)
    except PassFailedException as error:
        assert "may be on several ranks" in str(error)
        return
    check(plain, cut, seed)
