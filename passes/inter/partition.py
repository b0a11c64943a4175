"""partition: a program over nodes and edges becomes one over the rows that ranks have.

Each set of nodes N that is cut is four: the owned rows, the rows that others read (`sent`, with the
row that is sent), the rows of others that are read (`ghost`), and no N. An edge lies with the row
that it leads to: a set of edges g is its local edges, between owned rows, and its remote ones, from
a ghost to an owned row. So

- what works row by row is done for owned rows, and for local and for remote edges;
- a read of owned rows by remote edges moves them: `at %sent[owner]` packs, `inter.move` carries;
- sums over edges are those of the local and of the remote ones added, means are divided by both
  counts; what is no sum (maximum, softmax) runs over the union of the two, or, where groups have
  rows of several ranks, on each part, and over what comes of these (far_reductions.py);
- sets made from sets (loops, filters, unions) are made of each part: no remote edge is a loop;
- a map of nodes into nodes, by which they read rows of a table, becomes edges from the rows that
  are read, one a node: local ones, and remote ones from ghosts of the table (`N_word_local` and
  `N_word_remote`), and a read is the sum over these.

The program is still one over the rows of all ranks together, so every other pass has nothing to
know: autodiff makes the way back of the messages, reorder-linear sees what crosses. The arguments
`rows<N_own, i64> {inter.global_rows}` and the like tell global-rows, which comes next, what each
row is in the whole graph.

`sets` are the sets of nodes to cut; by default all that a map `src` or `dst` of an argument leads
to. Sets that are not cut (relations, classes, weights) are the same on every rank. With `chunks`
the rows that cross, and the remote edges that read them, are as many sets of each, so that those of
one chunk are summed while the next is under way. The maps `far`, such as `g.dst`, lead to rows that
their edges do not lie with: labels say what a program does with ends, and not which of them owns an
edge.
Comes before autodiff. Local and remote edges are those of MGG (Wang et al., OSDI 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...dialects.inter.types import SetType
from ..analysis.dependence import has_backward
from .partitioning.program import partitioned
from .verify_sets import verify_sets

ENDS = ("src", "dst")


def nodes_of(func: FuncOp) -> tuple[str, ...]:
    """The sets that a map `src` or `dst` of an argument leads to."""
    types = [a.type for a in func.body.block.args if isinstance(a.type, SetType)]
    found = (t.map_dict()[k].codomain for t in types for k in ENDS if k in t.map_dict())
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class PartitionPass(ModulePass):
    """Makes a program over nodes and edges one over the rows that ranks have."""

    name = "partition"

    sets: tuple[str, ...] = ()
    chunks: int = 1
    far: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in list(op.body.ops):
            if isinstance(func, FuncOp) and func.body.blocks:
                self._replace(func)

    def _replace(self, func: FuncOp) -> None:
        name = func.sym_name.data
        if self.chunks < 1:
            raise PassFailedException(f"partition: {self.chunks} chunks: there is one at least")
        if has_backward(func):
            raise PassFailedException(f"partition: @{name} has gradients: partition comes first")
        env = verify_sets(func)
        cut = self.sets or nodes_of(func)
        if unknown := [s for s in cut if s not in env.sets]:
            raise PassFailedException(f"partition: @{name} has no set {unknown[0]}")
        if not cut:
            raise PassFailedException(
                f"partition: no map src or dst of an argument of @{name} says what nodes are: name "
                "them by `sets`"
            )
        try:
            made = partitioned(func, env, cut, self.chunks, self.far)
        except VerifyException as error:
            raise PassFailedException(f"partition: @{name}: {error}") from error
        Rewriter.replace_op(func, made)
