"""fuse-traversals keeps the meaning and leaves no buffer with a row of features for each edge."""

import pytest

from gnnc.dialects.intra.bindings import AllocOp, MemberMapOp, MembersOp, OutputOp
from gnnc.dialects.intra.loops import SegmentOp
from gnnc.dialects.intra.rows import ApplyOp, MatmulOp
from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.targets.openmp import OPENMP

from ..lowered import INFER, TRAIN, VANILLA, after, nests, phase, row_numbers, temporaries
from ..programs import PROGRAMS as LAYERS
from ..small_programs import PROGRAMS as SMALL
from ..small_programs import E, X, program

SEEDS = range(2)
FULL = (
    "canonicalize,cse,unify-sets,canonicalize,cse,raise,reorder-linear,canonicalize,cse,dce,"
    "infer-domains,autodiff,canonicalize,cse,dce,expand-softmax,reorder-linear,canonicalize,cse,"
    "dce,plan-saves,hoist-invariants,split-phases"
)
"""The standard pipeline up to the phases."""


@pytest.mark.parametrize("name", SMALL)
def test_small_programs_keep_their_meaning(name):
    lowered = after(SMALL[name], f"{TRAIN},lower-to-intra")
    same_meaning(lowered, after(lowered, "fuse-traversals"), seeds=SEEDS)


@pytest.mark.parametrize("phases", [FULL, VANILLA], ids=["full", "vanilla"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_keep_their_meaning(name, phases):
    lowered = after(LAYERS[name], f"{phases},lower-to-intra")
    same_meaning(lowered, after(lowered, "fuse-traversals"), seeds=SEEDS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAYERS)
def test_fusing_twice_changes_nothing(name):
    once = after(LAYERS[name], f"{TRAIN},lower-to-intra,fuse-traversals")
    assert str(after(once, "fuse-traversals")) == str(once)


@pytest.mark.parametrize("phases", [TRAIN, FULL], ids=["train", "full"])
@pytest.mark.parametrize("name", ["gcn", "sage", "gin"])
def test_no_features_for_each_edge(name, phases):
    """No buffer over edges holds more than one number a row: no E x F temporary."""
    module = after(LAYERS[name], f"{phases},lower-to-intra,fuse-traversals")
    edges = {"g", "g1", "u"}
    wide = [
        op
        for op in module.walk()
        if isinstance(op, AllocOp | OutputOp)
        and op.domain is not None
        and op.domain.set_name.data in edges
        and row_numbers(op.result) > 1
    ]
    assert not wide


def test_attention_keeps_a_number_for_each_edge_and_head():
    module = after(LAYERS["gat"], f"{FULL},lower-to-intra,fuse-traversals")
    for name in ("forward", "backward"):
        assert {n for d, n in temporaries(module, name) if d == "g"} <= {1, 2}


def fused(text):
    return after(text, f"{INFER},lower-to-intra,fuse-traversals")


def test_a_layer_is_one_nest():
    """gather, sum, bias, activation and product: nothing in between is stored."""
    module = fused(
        program(
            f"{X}, %b : !inter.rows<unit, 3xf64>, %W : !inter.rows<unit, 3x2xf64>",
            "%y : !inter.rows<N, 2xf64>",
            """
%s = inter.at %g[src], %x : !inter.rows<g, 3xf64>
%a = inter.reduce sum %s over %g along dst : !inter.rows<N, 3xf64>
%c = inter.add %a, %b : !inter.rows<N, 3xf64>
%r = inter.relu %c : !inter.rows<N, 3xf64>
%y = inter.contract "k,kf->f" %r, %W : !inter.rows<N, 2xf64>
""",
        )
    )
    assert len(nests(module)) == 1
    assert temporaries(module) == []


def test_a_gather_never_merges():
    """What other rows read must be there before: two nests."""
    module = fused(
        program(
            X,
            "%y : !inter.rows<N, 3xf64>",
            """
%r = inter.exp %x : !inter.rows<N, 3xf64>
%s = inter.at %g[src], %r : !inter.rows<g, 3xf64>
%y = inter.reduce sum %s over %g along dst : !inter.rows<N, 3xf64>
""",
        )
    )
    assert len(nests(module)) == 2
    assert temporaries(module) == [("N", 3)]


def test_exp_is_not_computed_twice():
    """A costly message with two readers is stored, a cheap one is computed by both."""
    for fn, stored in (("exp", 1), ("neg", 0)):
        module = fused(SMALL["a value in two sums"].replace("inter.exp", f"inter.{fn}"))
        count = sum(op.fn.data == fn for op in phase(module).walk() if isinstance(op, ApplyOp))
        assert len(temporaries(module)) == stored
        assert count == 2 - stored


def test_sums_of_one_group_share_a_loop():
    module = fused(
        program(
            E,
            "%y : !inter.rows<N, 3xf64>; %z : !inter.rows<N, 3xf64>",
            """
%y = inter.reduce sum %e over %g along dst : !inter.rows<N, 3xf64>
%z = inter.reduce max %e over %g along dst : !inter.rows<N, 3xf64>
""",
        )
    )
    (segment,) = [op for op in phase(module).walk() if isinstance(op, SegmentOp)]
    assert [k.data for k in segment.kinds] == ["sum", "max"]


def test_a_nest_has_few_products():
    """Products of the same rows share nests, of which none grows with their number."""
    limit = OPENMP.nests.merged_products
    count = 2 * limit + 3
    weights = "".join(f", %W{k} : !inter.rows<unit, 3x2xf64>" for k in range(count))
    results = "; ".join(f"%y{k} : !inter.rows<N, 2xf64>" for k in range(count))
    products = (
        f'%y{k} = inter.contract "k,kf->f" %x, %W{k} : !inter.rows<N, 2xf64>' for k in range(count)
    )
    lowered = after(
        program(f"{X}{weights}", results, "\n".join(products)), f"{INFER},lower-to-intra"
    )
    module = after(lowered, "fuse-traversals")
    found = [sum(isinstance(op, MatmulOp) for op in nest.walk()) for nest in nests(module)]
    assert sum(found) == count and max(found) <= limit and len(found) < count / 2
    same_meaning(lowered, module, seeds=SEEDS)


def test_look_ups_of_members_stream():
    """`src[members[p]]` becomes one table; only the members themselves are needed for edge rows."""
    module = fused(
        program(
            X,
            "%y : !inter.rows<N, 3xf64>",
            """
%s = inter.at %g[src], %x : !inter.rows<g, 3xf64>
%y = inter.reduce sum %s over %g along dst : !inter.rows<N, 3xf64>
""",
        )
    )
    tables = [op for op in phase(module).body.block.ops if isinstance(op, MembersOp | MemberMapOp)]
    assert [type(t) for t in tables] == [MemberMapOp]


def test_the_gradient_of_a_mean_is_stored_once():
    """Two layers of means with a weight for the node itself: what flows back into the first is
    stored divided by the sizes of the groups, and not once more as it is."""
    weights = ", ".join(
        f"%W{k} : !inter.rows<unit, 3x3xf64> {{inter.needs_grad}}" for k in range(4)
    )
    module = after(
        program(
            f"{X}, {weights}",
            "%o1 : !inter.rows<N, 3xf64>",
            "".join(
                f"""
%s{k} = inter.at %g[src], {x} : !inter.rows<g, 3xf64>
%m{k} = inter.reduce mean %s{k} over %g along dst : !inter.rows<N, 3xf64>
%l{k} = inter.contract "k,kf->f" %m{k}, %W{2 * k} : !inter.rows<N, 3xf64>
%r{k} = inter.contract "k,kf->f" {x}, %W{2 * k + 1} : !inter.rows<N, 3xf64>
%h{k} = inter.add %l{k}, %r{k} : !inter.rows<N, 3xf64>
%o{k} = inter.tanh %h{k} : !inter.rows<N, 3xf64>
"""
                for k, x in enumerate(("%x", "%o0"))
            ),
        ),
        f"{FULL},lower-to-intra",
    )
    once = after(module, "fuse-traversals")
    same_meaning(module, once, seeds=SEEDS)
    assert temporaries(once, "backward") == [("N", 3), ("N", 3)]  # one a layer
