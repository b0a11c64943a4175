"""What constant positions read is imported as slices: as few as they need, not one a position."""

import copy
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import FastRGCNConv

import gnnc
from gnnc.frontend.torch.importer.values.values import slices
from gnnc.passes.driver.runner import module_text

from .equality import Edges, assert_interchangeable, random_edges
from .layer_checks import perturbed
from .test_import_details import program_of

RELATIONS = 40


@pytest.mark.parametrize(
    "positions, ranges",
    [
        ([0, 1, 2, 3], [range(0, 4)]),
        ([1, 4, 7], [range(1, 8, 3)]),
        ([3, 2], [range(3, 4), range(2, 3)]),
        ([2, 2], [range(2, 3), range(2, 3)]),
        ([0, 1, 5, 6, 0], [range(0, 2), range(5, 7), range(0, 1)]),
    ],
)
def test_positions_that_continue_each_other_are_one_range(
    positions: list[int], ranges: list[range]
) -> None:
    found = slices.joined([range(i, i + 1) for i in positions])
    assert found == ranges
    assert [i for r in found for i in r] == positions


def test_ranges_join_where_their_steps_fit() -> None:
    assert slices.joined([range(0, 2), range(2, 5)]) == [range(0, 5)]
    assert slices.joined([range(0, 3, 2), range(4, 5)]) == [range(0, 5, 2)]
    assert slices.joined([range(0, 1), range(3, 8, 2)]) == [range(0, 1), range(3, 8, 2)]
    assert slices.joined([range(0, 1), range(1, 4, 2)]) == [range(0, 1), range(1, 4, 2)]
    assert slices.joined([range(0, 2), range(3, 5)]) == [range(0, 2), range(3, 5)]


class Chosen(nn.Module):
    """Reads its weight at constant positions."""

    def __init__(self, positions: Sequence[int], rows: int = 12) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, 3))
        self.positions = list(positions)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight[self.positions]


@pytest.mark.parametrize(
    "positions, ops",
    [
        (range(12), []),
        (range(1, 12, 3), ["reshape", "slice", "reshape"]),
        ((2, 3, 4, 5), ["slice"]),
        ((-1, 5, 5), ["slice", "slice", "concat"]),
    ],
)
def test_constant_positions(positions: Sequence[int], ops: list[str]) -> None:
    eager = Chosen(positions)
    x = torch.randn(7, len(positions), requires_grad=True)
    found = program_of(eager, x).module
    names = [op.name.removeprefix("inter.") for op in found.walk()]
    assert [n for n in names if n in ("reshape", "slice", "concat")] == ops
    compiled = gnnc.compile(copy.deepcopy(eager), fullgraph=True)
    assert_interchangeable(eager, compiled, (x,))


def test_positions_out_of_range_are_left_to_torch() -> None:
    with pytest.raises(IndexError):
        gnnc.compile(Chosen((0, 12)))(torch.randn(7, 2))


def arguments(g: Edges, features: int | None, relations: int) -> tuple[Tensor | None, ...]:
    x = None if features is None else torch.randn(g.sources, features, requires_grad=True)
    return x, g.index, torch.randint(0, relations, (g.index.shape[1],))


@pytest.mark.parametrize("features", [None, 5])
def test_many_relations(features: int | None) -> None:
    """As many ops as with few relations and nodes, and the numbers of the eager layer."""
    texts: list[str] = []
    for nodes, relations in ((9, 3), (50, RELATIONS)):
        g = random_edges(0, nodes, nodes, 4 * nodes, "uniform")
        args = arguments(g, features, relations)
        eager = perturbed(lambda n=nodes, r=relations: FastRGCNConv(features or n, 3, r))
        compiled = gnnc.compile(copy.deepcopy(eager))
        assert_interchangeable(eager, compiled, args)
        report = gnnc.explain(compiled)
        assert (report.graphs, report.fallbacks) == (1, [])
        texts.append(module_text(program_of(eager, *args).module))
    few, many = texts
    assert len(few.splitlines()) == len(many.splitlines())
