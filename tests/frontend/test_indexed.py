"""Reads and writes by index, and products of several tensors: torch's values and gradients."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import gnnc

from .equality import assert_interchangeable
from .function_checks import check, drawn
from .layer_checks import perturbed, rows

NODES, EDGES, WIDTH = 11, 40, 4
LEAST = torch.finfo(torch.float64).min


def index(seed: int = 0, below: int = NODES - 1) -> Tensor:
    """Numbers of nodes, of which one has no edge."""
    return torch.randint(0, below, (EDGES,), generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------- writes


def with_ties(x: Tensor) -> Tensor:
    """Small integers, so that several rows of a group are the largest, or are 0."""
    return (2 * x.detach()).round().clamp(-1, 1).requires_grad_()


@pytest.mark.parametrize("kind", ["amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_extremes(kind: str, include_self: bool) -> None:
    def reduced(x: Tensor, i: Tensor, nodes: Tensor) -> list[Tensor]:
        wide = i.unsqueeze(-1).expand(-1, WIDTH)
        out = []
        least = (-math.inf, LEAST) if kind == "amax" else (math.inf, -LEAST)
        for start in (0.0, *least):
            whole = torch.full_like(nodes, start)
            y = whole.scatter_reduce(0, wide, x, kind, include_self=include_self)
            line = whole[:, 0].scatter_reduce(0, i, x[:, 0], kind, include_self=include_self)
            out += [y[i] * x, line[i]]
        return out

    nodes = drawn(NODES, WIDTH).detach()
    check(reduced, drawn(EDGES, WIDTH, seed=1), index(), nodes)
    check(reduced, with_ties(drawn(EDGES, WIDTH, seed=2)), index(1), nodes)


@pytest.mark.parametrize("kind", ["amax", "amin"])
def test_extremes_of_integers(kind: str) -> None:
    def outermost(x: Tensor, i: Tensor, nodes: Tensor) -> list[Tensor]:
        number = torch.arange(i.shape[0]) - 3
        place = i.new_zeros(nodes.shape[0]).scatter_reduce(0, i, number, kind, include_self=False)
        return [x * (place[i] == number), nodes * place]

    check(outermost, drawn(EDGES), index(), drawn(NODES))


def test_groups_without_rows_keep_what_they_started_from() -> None:
    def reduced(x: Tensor, i: Tensor, nodes: Tensor) -> list[Tensor]:
        return [torch.full_like(nodes, -math.inf).scatter_reduce(0, i, x, "amax").clamp(min=-9.0)]

    check(reduced, drawn(EDGES), index(), drawn(NODES).detach())


def test_sums_in_place() -> None:
    def put(x: Tensor, i: Tensor, nodes: Tensor) -> list[Tensor]:
        y = nodes * 2
        y.index_put_((i,), x, accumulate=True)
        z = nodes[:, 0] * 2
        z.index_put_((i,), x.sum(1) * 3, accumulate=True)
        return [y, z]

    check(put, drawn(EDGES, WIDTH), index(), drawn(NODES, WIDTH, seed=1))


def test_items_by_several_numbers_and_slices() -> None:
    def put(x: Tensor) -> list[Tensor]:
        wide, total = (x * 2).view(-1, 2, 2), x.sum(0)
        wide[:, 1, 0] = x[:, 3]
        wide[..., 1] += total[:2]
        flat = x.sin()
        flat[:, 1:3] = x[:, :1]
        flat[..., 3:1] = 5.0
        small = x.new_zeros(3, WIDTH)
        small[1:, 0] = total[0]
        small[-1, 2:] = 0.5
        return [wide, flat, small * total]

    check(put, drawn(NODES, WIDTH))


def by_mask(y: Tensor, kinds: Tensor, k: int, x: Tensor) -> None:
    y[kinds == k] = x[kinds == k] * (k + 1)


def by_number(y: Tensor, kinds: Tensor, k: int, x: Tensor) -> None:
    of_kind = (kinds == k).nonzero().view(-1)
    y[of_kind] = x[of_kind] * (k + 1)


def copied(y: Tensor, kinds: Tensor, k: int, x: Tensor) -> None:
    of_kind = (kinds == k).nonzero(as_tuple=True)[0]
    y.index_copy_(0, of_kind, x.index_select(0, of_kind) * (k + 1))


def filled(y: Tensor, kinds: Tensor, k: int, x: Tensor) -> None:
    y[torch.where(kinds == k)[0]] = x.mean(0) * k
    y.index_fill_(0, (kinds == k + 3).nonzero().squeeze(-1), 0.5)


@pytest.mark.parametrize("edit", [by_mask, by_number, copied, filled])
def test_rows_by_kind(edit: Callable[..., None]) -> None:
    """Into a tensor that nobody has written to, or that has more to say."""

    def edited(x: Tensor, kinds: Tensor) -> list[Tensor]:
        empty, known = x.new_empty(x.size(0), WIDTH), torch.sin(x)
        for k in range(3):
            edit(empty, kinds, k, x)
            edit(known, kinds, k + 1, x)
        first = torch.empty_like(x).copy_(x)
        return [torch.where((kinds < 3).unsqueeze(-1), empty, first), known]

    check(edited, drawn(EDGES, WIDTH), index(below=7))


def test_rows_by_numbers_that_come_again() -> None:
    """The last stays, and all get the gradient of the row, as in torch."""

    def put(x: Tensor, i: Tensor, nodes: Tensor) -> list[Tensor]:
        y, line, flags = nodes.sin(), nodes[:, 0] * 2, nodes > 0
        y[i] = x * 2
        line.index_copy_(0, i, x[:, 1])
        flags[i] = x[:, :1] > 0
        whole = (nodes.detach() * 9).long().index_copy(0, i, (x.detach() * 9).long())
        return [y, line, nodes.index_fill(0, i, 3.0), flags.double(), whole.double()]

    assert index().unique().numel() < EDGES
    check(put, drawn(EDGES, WIDTH), index(), drawn(NODES, WIDTH, seed=1))


def test_infinities_that_are_overwritten() -> None:
    def put(x: Tensor, i: Tensor, nodes: Tensor, more: Tensor) -> list[Tensor]:
        return [nodes.index_copy(0, i, x + more)]

    again, more = torch.tensor([3, 2, 4, 4, 3, 7]), torch.zeros(6, WIDTH, dtype=torch.float64)
    more[0], more[2] = math.inf, math.nan
    check(put, drawn(6, WIDTH).detach(), again, drawn(NODES, WIDTH, seed=1), more)


def test_counts() -> None:
    def counted(x: Tensor, i: Tensor, nodes: Tensor) -> list[Tensor]:
        count = torch.bincount(i, minlength=nodes.size(0))
        return [nodes / count.clamp(min=1).unsqueeze(-1), x * count[i], count.to(x.dtype)]

    def weighed(x: Tensor, i: Tensor, nodes: Tensor) -> list[Tensor]:
        weights = torch.bincount(i, x.detach(), minlength=nodes.size(0))
        return [nodes.sum(1) * weights]

    args = drawn(EDGES), index(), drawn(NODES, WIDTH, seed=1)
    check(counted, *args)
    check(weighed, *args)


def test_a_number_beyond_the_counted_is_an_error() -> None:
    """torch gives a longer result, which fits nothing, and says so."""
    compiled = gnnc.compile(lambda i, x: x * torch.bincount(i, minlength=x.size(0)))
    compiled(index(), drawn(NODES))
    wrong = index()
    wrong[3] = NODES
    with pytest.raises(RuntimeError, match=rf"\({NODES}\) must match .* \({NODES + 1}\)"):
        compiled(wrong, drawn(NODES))


def test_masks_and_narrow_indices_are_left_to_torch() -> None:
    """A mask adds to each row once; a narrow index writes the columns that it has."""

    def put(x: Tensor, i: Tensor) -> Tensor:
        return (x * 2).index_put((i > 4,), torch.tensor(2.0, dtype=x.dtype), accumulate=True)

    def narrow(x: Tensor, i: Tensor) -> Tensor:
        return torch.zeros(NODES, WIDTH, dtype=x.dtype).scatter_add(0, i.unsqueeze(-1), 2 * x)

    for f, words in ((put, "rows of a mask"), (narrow, "narrower")):
        compiled = gnnc.compile(f)
        x, i = drawn(EDGES, WIDTH), index()
        assert torch.allclose(compiled(x, i), f(x, i))
        assert any(words in told for told in gnnc.explain(compiled).fallbacks)


def test_bools_in_a_list_are_a_mask() -> None:
    compiled = gnnc.compile(lambda x, y: (x @ y)[:, [True, False, True, True]])
    x, y = drawn(NODES, WIDTH), drawn(WIDTH, WIDTH, seed=1)
    assert torch.allclose(compiled(x, y), (x @ y)[:, [0, 2, 3]])


def test_rows_that_their_own_numbers_index() -> None:
    """A map of a set into itself, beside another map of the set."""

    def added(x: Tensor) -> list[Tensor]:
        own = torch.arange(x.size(0))
        once = x.new_zeros(x.size(0), WIDTH).index_add(0, own, x)
        twice = torch.zeros_like(x).index_add(0, own, once + x)
        kinds = x.new_zeros(3, WIDTH).index_add(0, own % 3, once)
        return [twice, kinds, kinds[own % 3] * once[own]]

    check(added, drawn(NODES, WIDTH))


# ---------------------------------------------------------------- reads


@pytest.mark.one_in(2)
@pytest.mark.parametrize("k", [0, 2, WIDTH])
def test_one_number_as_the_index_of_all_rows(k: int) -> None:
    """It is checked like one a row, and not where there is no row."""

    def literal(x: Tensor) -> list[Tensor]:
        return [(2 * x).gather(1, torch.full((x.size(0), 1), k)), 3 * x]

    def given(x: Tensor, j: Tensor) -> list[Tensor]:
        return [(2 * x).gather(1, j.expand(x.size(0)).unsqueeze(-1)), 3 * x]

    for f, others in ((literal, ()), (given, (torch.tensor([k]),))):
        if k < WIDTH:
            check(f, drawn(EDGES, WIDTH), *others)
            continue
        compiled = gnnc.compile(f)
        with pytest.raises(RuntimeError, match=f"index {k} is out of bounds"):
            compiled(drawn(EDGES, WIDTH), *others)
        assert compiled(torch.empty(0, WIDTH), *others)[0].shape == (0, 1)
        assert gnnc.explain(compiled).fallbacks == []


def test_edges_of_a_constant_number_are_left_to_torch() -> None:
    def normalised(x: Tensor) -> Tensor:
        edges = torch.tensor([[0, 1, 1], [1, 1, 2]])
        weight = gcn_norm(edges, None, x.size(0), dtype=x.dtype)[1]
        return x.exp().sum() * weight

    compiled = gnnc.compile(normalised)
    x = drawn(NODES, WIDTH)
    assert torch.allclose(compiled(x), normalised(x))
    assert any("gcn_norm: a tensor of constant size" in f for f in gnnc.explain(compiled).fallbacks)


def test_numbers_beside_an_index_tensor() -> None:
    def read(e: Tensor, x: Tensor) -> list[Tensor]:
        wide = x.view(-1, 2, 2)
        far = e[0] < 5
        return [
            x[e[0]] + x[e[-1]],
            x[e[0, far]] * x[e[1][far]],
            wide[e[0], 1],
            wide[e[1], :, 0],
            wide[:, 1][e[0]],
            wide[None, e[0], 0],
            wide[e[0], ..., 1, None],
            x[torch.arange(x.size(0))] * 2,
        ]

    check(read, torch.stack([index(), index(1)]), drawn(NODES, WIDTH))


def test_lists_beside_each_other_are_left_to_torch() -> None:
    """They choose pairs, not a block."""

    def read(x: Tensor, i: Tensor) -> Tensor:
        return (x.t() @ x)[[0, 1], [1, 2]].sum() * x[i]

    compiled = gnnc.compile(read)
    x, i = drawn(NODES, WIDTH), index()
    assert torch.allclose(compiled(x, i), read(x, i))
    assert any("two index tensors" in f for f in gnnc.explain(compiled).fallbacks)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x, y: torch.einsum("ni,ij->nj", x[:, :1], y), "size 1 that broadcasts"),
        (lambda x, y: torch.einsum(x, [..., 1], y, [1, 2], [..., 2]), "with an ellipsis"),
    ],
)
def test_other_spellings_of_einsum(f: Callable[..., Tensor], words: str) -> None:
    compiled = gnnc.compile(f)
    x, y = drawn(NODES, WIDTH), drawn(WIDTH, WIDTH, seed=1)
    assert torch.allclose(compiled(x, y), f(x, y))
    assert any(words in told for told in gnnc.explain(compiled).fallbacks)


# ---------------------------------------------------------------- products

PRODUCTS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "three": lambda x, v, w: torch.einsum("ni,ij,nj->n", x, v, x),
    "three-summed": lambda x, v, w: torch.einsum("ni,rij,nj->rn", x, w, x),
    "numbered": lambda x, v, w: torch.einsum(x, [0, 1], v, [1, 2], [0, 2]),
    "implicit": lambda x, v, w: torch.einsum("ni,ij", x, v),
    "implicit-scalar": lambda x, v, w: torch.einsum("ni,ni", x, x),
    "stack": lambda x, v, w: x @ w,
    "stack-of-one": lambda x, v, w: x.unsqueeze(0) @ w,
    "stack-left": lambda x, v, w: (w.transpose(1, 2) @ v).unsqueeze(0) @ (x @ v).t().sum(1),
    "stacks-of-one": lambda x, v, w: x.view(1, -1, 4) @ v.view(1, 4, 4),
    "added": lambda x, v, w: torch.addmm(x, x.tanh(), v, beta=0.3, alpha=-2.0),
    "added-to-nothing": lambda x, v, w: torch.addmm(x[:, :1].detach() / 0, x, v, beta=0),
    "rows-of-stacks": lambda x, v, w: x.view(-1, 1, 1, 4) @ w,
}


class Product(nn.Module):
    """A product with parameters: one matrix, and a stack of three."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.matrix = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.stack = nn.Parameter(torch.randn(3, WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return PRODUCTS[self.name](x, self.matrix, self.stack)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    eager = perturbed(lambda: Product(name))
    compiled = gnnc.compile(copy.deepcopy(eager))
    for k, nodes in enumerate((NODES, 30)):
        assert assert_interchangeable(eager, compiled, (rows(k, nodes, WIDTH),), k, together=True)
    assert gnnc.explain(compiled).fallbacks == []
    assert gnnc.explain(compiled).graphs == 1


# ---------------------------------------------------------------- sizes


def put(x: Tensor, i: Tensor, n: int) -> Tensor:
    return torch.zeros(n, x.shape[1]).index_put((i,), x, accumulate=True)


def largest(x: Tensor, i: Tensor, n: int) -> Tensor:
    return torch.zeros(n, x.shape[1]).scatter_reduce(0, i.view(-1, 1).expand_as(x), x, "amax")


def least(x: Tensor, i: Tensor, n: int) -> Tensor:
    return torch.zeros(n, x.shape[1]).index_reduce(0, i, x, "amin")


def counted(x: Tensor, i: Tensor, n: int) -> Tensor:
    return torch.bincount(i, minlength=n).to(x.dtype)


@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")
@pytest.mark.parametrize("f", [put, largest, least, counted], ids=lambda f: f.__name__)
def test_a_number_of_rows_as_an_argument_is_no_new_compilation(f: Callable[..., Tensor]) -> None:
    compiled = gnnc.compile(f)
    for n in (7, 11, 30, 5):
        i = torch.randint(0, n, (3 * n,))
        x = torch.randn(3 * n, 3)
        torch.testing.assert_close(compiled(x, i, n), f(x, i, n))
    report = gnnc.explain(compiled)
    assert (report.graphs, report.fallbacks) == (1, [])


# ---------------------------------------------------------------- loops


@pytest.mark.parametrize("improved", [True, False])
def test_weights_of_loops(improved: bool) -> None:
    """Without weights every edge has one, new loops too; of weights that are all one number old
    loops keep it and new ones do not."""

    def normalised(x: Tensor, w: Tensor, i: Tensor, j: Tensor) -> list[Tensor]:
        edges = torch.stack([i, j])
        ones = gcn_norm(edges, None, x.size(0), improved, dtype=x.dtype)[1]
        same = gcn_norm(edges, w.exp().expand(i.size(0)), x.size(0), improved)[1]
        own = gcn_norm(edges, x.sum(1)[i].exp(), x.size(0), improved)[1]
        return [ones * x.sum(), same, own]

    j = index(1)
    j[::4] = index(0)[::4]
    check(normalised, drawn(NODES, WIDTH), drawn(1, seed=1), index(0), j)
