"""What classes of ops have that xDSL's lack."""

import pytest
from xdsl.dialects.builtin import f32, i32
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.utils.exceptions import VerifyException

from gnnc.dialects.assembly import FormattedOp
from gnnc.dialects.inter import Inter
from gnnc.dialects.inter.types import Dom, RowsType
from gnnc.dialects.intra import Intra
from gnnc.dialects.intra.rows import ApplyOp, ConcatOp, FirstOp, LoadOp, SegmentOp, TraverseOp
from gnnc.dialects.intra.steps import Step
from gnnc.dialects.intra.syntax import buffer_type, need, row_type
from gnnc.passes.dead_ops import has_no_effect

OPS = [*Inter.operations, *Intra.operations]


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.name)
def test_every_format_can_be_read(kind):
    """Formats are read at their first use."""
    assert isinstance(kind.read_format(), FormatProgram)
    assert kind.get_irdl_definition().assembly_format == kind.assembly_format


def test_a_class_without_a_format_says_what_is_missing():
    with pytest.raises(TypeError, match="FormattedOp has no assembly format: define it with @op"):
        FormattedOp.read_format()


def test_operands_and_results_stand_where_they_are_declared():
    row = FirstOp.make([], [i32]).results[0]
    buffer = ConcatOp.make([], [buffer_type([3], f32)]).results[0]
    other = ConcatOp.make([], [row_type([3], f32)]).results[0]
    load = LoadOp.make([buffer, row, other], [row_type([3], f32)])
    assert (load.buffer, load.row, load.otherwise) == (buffer, row, other)
    assert load.result is load.results[0]
    assert LoadOp.make([buffer, row, None], [row_type([3], f32)]).otherwise is None
    both = ConcatOp.make([other, load.result], [row_type([6], f32)])
    assert tuple(both.xs) == (other, load.result)
    operands = list(load.operands)
    load.operands[0] = other
    assert load.buffer is other and load.row is operands[1]


def test_classes_know_their_own():
    assert isinstance(ApplyOp.make([], [f32]), ApplyOp)
    assert not isinstance(ApplyOp.make([], [f32]), Step | LoadOp)
    assert issubclass(TraverseOp, Step) and not issubclass(SegmentOp, Step)
    assert has_no_effect(SegmentOp) and not has_no_effect(TraverseOp)


def test_equal_types_are_one():
    made = [RowsType.get(Dom("N"), dims, f32) for dims in ([4, 2], (4, 2))]
    assert made[0] is made[1]
    assert made[0] != RowsType.get(Dom("N"), [2, 4], f32)
    assert row_type([4], f32) is row_type((4,), f32) != row_type([4], i32)
    with pytest.raises(VerifyException, match="positive"):
        RowsType.get(Dom("N"), [0], f32)


def test_messages_are_made_for_what_fails():
    need(True, lambda: pytest.fail("the check holds"))
    with pytest.raises(VerifyException, match="spelled"):
        need(False, lambda: "spelled")
