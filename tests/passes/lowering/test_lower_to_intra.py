"""lower-to-intra keeps the meaning, makes one nest an op, and says why it cannot."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from gnnc.dialects.intra.bindings import InputOp, PairIndexOp, WitnessOp
from gnnc.dialects.intra.loops import SegmentOp
from gnnc.dialects.intra.memory import LoadOp
from gnnc.dialects.intra.products import MatmulOp, OuterOp
from gnnc.dialects.intra.rows import ApplyOp
from gnnc.dialects.meaning.check import MeaningChanged, parse_module, same_meaning
from gnnc.passes.driver.pipelines import passes_of
from gnnc.passes.driver.runner import PassRunner
from gnnc.passes.driver.watch_meaning import CheckMeaning

from ..lowered import INFER, TRAIN, VANILLA, after, nests, phase
from ..programs import PROGRAMS as LAYERS
from ..small_programs import PROGRAMS as SMALL
from ..small_programs import X, program

SEEDS = range(2)


@pytest.mark.parametrize("name", SMALL)
def test_small_programs_keep_their_meaning(name):
    split = after(SMALL[name], TRAIN)
    same_meaning(split, after(split, "lower-to-intra"), seeds=SEEDS)


@pytest.mark.parametrize(
    "specification", [TRAIN, VANILLA, INFER], ids=["train", "vanilla", "infer"]
)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_keep_their_meaning(name, specification):
    split = after(LAYERS[name], specification)
    same_meaning(split, after(split, "lower-to-intra"), seeds=SEEDS)


def test_the_crossing_is_seen_to_be_wrong():
    """A wrong lowering does not pass the comparison."""
    split = after(SMALL["reduce max"], TRAIN)
    lowered = after(split, "lower-to-intra")
    segment = next(op for op in lowered.walk() if isinstance(op, SegmentOp))
    segment.properties["kinds"] = ArrayAttr([StringAttr("min")])
    with pytest.raises(MeaningChanged, match="y differs"):
        same_meaning(split, lowered)


def test_a_nest_for_each_op():
    text = program(
        X,
        "%c : !inter.rows<N, 3xf64>",
        """
%a = inter.exp %x : !inter.rows<N, 3xf64>
%b = inter.neg %a : !inter.rows<N, 3xf64>
%c = inter.tanh %b : !inter.rows<N, 3xf64>
""",
    )
    found = nests(after(text, f"{INFER},lower-to-intra"))
    assert [[op.fn.data for op in n.walk() if isinstance(op, ApplyOp)] for n in found] == [
        ["exp"],
        ["neg"],
        ["tanh"],
    ]


def test_a_summed_outer_product_is_never_stored():
    """The gradient of a weight: no buffer holds a matrix for each node."""
    module = after(SMALL["linear"], f"{TRAIN},lower-to-intra")
    backward = phase(module, "backward")
    assert [op.spec.data for op in backward.walk() if isinstance(op, OuterOp)] == ["k,f->kf"]
    assert [op.spec.data for op in backward.walk() if isinstance(op, MatmulOp)] == ["k,fk->f"]


def test_a_product_with_each_relation_runs_over_pairs():
    """Two keys: one product for each pair that occurs, found from an edge by a pair index."""
    module = after(SMALL["pairs read from edges"], f"{INFER},lower-to-intra")
    assert [str(n.size.owner.domain) for n in nests(module)] == ["g[rel, src]"] * 2 + ["N"]
    assert any(isinstance(op, PairIndexOp) for op in phase(module).walk())


def test_else_reads_where_a_partial_map_has_no_value():
    module = after(SMALL["else"], f"{INFER},lower-to-intra")
    loads = [op for op in phase(module).walk() if isinstance(op, LoadOp)]
    assert sum(op.otherwise is not None for op in loads) == 1


def test_a_coarser_class_is_read_through_a_witness():
    """What is seen through src on pairs (src.batch, src.tag) is found at a row that has them."""
    module = after(LAYERS["hetero"], f"{INFER},lower-to-intra")
    tables = [op for op in phase(module).walk() if isinstance(op, WitnessOp)]
    assert [(str(op.domain), op.along_paths) for op in tables] == [("g", ("src.batch", "src.tag"))]


def test_inputs_say_where_their_rows_lie():
    module = after(SMALL["pairs read from edges"], f"{INFER},lower-to-intra")
    inputs = {op.buffer.data: op.domain for op in phase(module).walk() if isinstance(op, InputOp)}
    assert {k: str(v) for k, v in inputs.items()} == {"x": "N", "W": "R"}


def test_the_standard_pipeline_is_checked_to_the_end():
    """--check-passes interprets before and after every pass, across the lowering too."""
    skipped: list[str] = []
    module = parse_module(LAYERS["gat"])
    passes = passes_of(f"{TRAIN},lower-to-intra,fuse-traversals,schedule,cut-stages,plan-memory")
    PassRunner(Context(), passes, [CheckMeaning(skipped.append)]).run(module)
    assert not skipped
