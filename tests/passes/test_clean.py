"""canonicalize, cse and dead ops: what xDSL's passes of these names do."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass as XdslCanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import region_dce

from gnnc.dialects.intra.rows import SegmentOp
from gnnc.passes.canonicalize import CanonicalizePass
from gnnc.passes.cse import CsePass, share_equal
from gnnc.passes.dead_ops import erase_dead
from gnnc.passes.driver.pipelines import passes_of, pipeline
from gnnc.passes.driver.runner import module_text
from gnnc.passes.targets import target_named

from .lowered import after, nests
from .random_programs import Drawer

PAIRS = {
    "canonicalize": (CanonicalizePass(), XdslCanonicalizePass()),
    "cse": (CsePass(), CommonSubexpressionElimination()),
}
STAGES = ("", "autodiff", "autodiff,expand-softmax,reorder-linear", "split-phases,lower-to-intra")


def text_after(module: ModuleOp, pass_: ModulePass) -> str:
    copy = module.clone()
    pass_.apply(Context(), copy)
    return module_text(copy)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", PAIRS)
def test_as_xdsl_does(name: str, stage: str) -> None:
    changed = 0
    for seed in range(12):
        module = after(Drawer(seed).module(), stage)
        ours, theirs = (text_after(module, pass_) for pass_ in PAIRS[name])
        assert ours == theirs
        changed += ours != module_text(module)
    assert changed, "the programs have nothing that the pass would change"


def test_dead_ops_as_xdsl_does() -> None:
    for seed in range(12):
        module = after(Drawer(seed).module(), "split-phases,lower-to-intra,fuse-traversals")
        for nest in nests(module)[::2]:  # which store nothing from here on
            for op in [op for op in nest.body.block.ops if not op.results]:
                op.detach()
                op.erase()
        copy = module.clone()
        erased = [erase_dead(func.regions[0].block) for func in module.body.block.ops]
        assert erased == [region_dce(func.regions[0]) for func in copy.body.block.ops]
        assert any(erased)
        while any([region_dce(func.regions[0]) for func in copy.body.block.ops]):
            pass
        assert module_text(module) == module_text(copy)


def test_equal_loops_are_one_where_both_are_seen() -> None:
    """Segments with equal bodies are one within a nest; those of another nest are not seen."""
    text = """
    func.func @forward() attributes {intra.phase} {
      %n = intra.size {domain = #intra.domain<N>} : index
      %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
      %m = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
      %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
      %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
      %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
      intra.traverse %i in %n {
        %a = intra.segment %p in %o[%i] ["sum"] {
          %r = intra.lookup %m[%p] : index
          %v = intra.load %x[%r] : f32
          intra.yield %v
        } : f32
        %b = intra.segment %p in %o[%i] ["sum"] {
          %r = intra.lookup %m[%p] : index
          %v = intra.load %x[%r] : f32
          intra.yield %v
        } : f32
        %c = intra.segment %p in %o[%i] ["max"] {
          %r = intra.lookup %m[%p] : index
          %v = intra.load %x[%r] : f32
          intra.yield %v
        } : f32
        %d = intra.apply %a, %b {fn = "add"} : f32
        %e = intra.apply %d, %c {fn = "add"} : f32
        intra.store %e, %y[%i]
      }
      intra.traverse %i in %n {
        %a = intra.segment %p in %o[%i] ["sum"] {
          %r = intra.lookup %m[%p] : index
          %v = intra.load %x[%r] : f32
          intra.yield %v
        } : f32
        intra.store %a, %z[%i]
      }
      func.return
    }
    """
    module = after(text, "")
    share_equal(module)
    found = [[op for op in nest.walk() if isinstance(op, SegmentOp)] for nest in nests(module)]
    assert [len(segments) for segments in found] == [2, 1]
    module.verify()


def test_they_are_the_passes_of_the_pipeline() -> None:
    passes = passes_of(pipeline(True, target_named("openmp")))
    clean = {type(p) for p in passes if p.name in PAIRS}
    assert clean == {CanonicalizePass, CsePass}
