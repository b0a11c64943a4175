"""Batches of links."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NegativeSampling

from gnnc.frontend.torch.loader import LinkNeighborLoader

from .graphs import plain, typed


def links_of(batch: Data) -> torch.Tensor:
    return batch.n_id[batch.edge_label_index]


def edges(data: Data) -> set[tuple[int, int]]:
    return set(map(tuple, data.edge_index.t().tolist()))


def test_links_without_negatives():
    data = plain()
    labels = torch.arange(900)
    batches = list(LinkNeighborLoader(data, [3, 2], edge_label=labels, batch_size=400))
    assert [b.input_id.numel() for b in batches] == [400, 400, 100]
    for batch in batches:
        assert torch.equal(links_of(batch), data.edge_index[:, batch.input_id])
        assert torch.equal(batch.edge_label, batch.input_id)
        seeds = batch.n_id[: batch.num_sampled_nodes[0]]
        assert torch.equal(seeds, links_of(batch).unique())
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
        assert torch.equal(batch.x, data.x[batch.n_id])
    (batch,) = LinkNeighborLoader(data, [2], batch_size=900)
    assert "edge_label" not in batch


@pytest.mark.parametrize("ratio", [0.5, 2])
def test_binary_negatives_are_no_edges(ratio: float):
    data = plain()
    given = torch.tensor([[3, 4, 5], [6, 7, 8]])
    (batch,) = LinkNeighborLoader(data, [3], given, neg_sampling_ratio=ratio, batch_size=3, seed=1)
    assert torch.equal(links_of(batch)[:, :3], given)
    negatives = links_of(batch)[:, 3:].t().tolist()
    assert len(negatives) == np.ceil(3 * ratio)
    assert not {tuple(n) for n in negatives} & (edges(data) | {(3, 6), (4, 7), (5, 8)})
    assert batch.edge_label.tolist() == [1.0] * 3 + [0.0] * len(negatives)


def test_labels_count_on_where_negatives_have_none():
    labels = torch.tensor([0, 2, 1])
    given = torch.tensor([[3, 4, 5], [6, 7, 8]])
    loader = LinkNeighborLoader(plain(), [3], given, labels, neg_sampling="binary", batch_size=3)
    (batch,) = loader
    assert batch.edge_label.tolist() == [1, 3, 2, 0, 0, 0]


@pytest.mark.parametrize("amount", [1, 4])
def test_triplets(amount: int):
    data = plain()
    found = edges(data)
    for batch in LinkNeighborLoader(
        data, [2, 2], neg_sampling=NegativeSampling("triplet", amount), batch_size=100
    ):
        src, dst = batch.n_id[batch.src_index], batch.n_id[batch.dst_pos_index]
        assert torch.equal(torch.stack([src, dst]), data.edge_index[:, batch.input_id])
        shape = (batch.input_id.numel(), amount)[: 1 + (amount > 1)]
        assert batch.dst_neg_index.shape == shape
        drawn = batch.n_id[batch.dst_neg_index].view(src.numel(), -1)
        pairs = {(s, d) for s, row in zip(src.tolist(), drawn.tolist()) for d in row}
        assert not pairs & found
        assert "edge_label_index" not in batch


@pytest.mark.parametrize("kind", [("author", "writes", "paper"), ("paper", "cites", "paper")])
@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_types(kind: tuple[str, str, str], mode: str):
    data = typed()
    known = set(map(tuple, data[kind].edge_index.t().tolist()))
    for batch in LinkNeighborLoader(data, [3, 2], kind, neg_sampling=mode, batch_size=80):
        source, target = batch[kind[0]], batch[kind[2]]
        given = data[kind].edge_index[:, batch[kind].input_id]
        if mode == "binary":
            places = batch[kind].edge_label_index
            ends = torch.stack([source.n_id[places[0]], target.n_id[places[1]]])
            size = given.size(1)
            assert torch.equal(ends[:, :size], given)
            assert not set(map(tuple, ends[:, size:].t().tolist())) & known
            continue
        ends = torch.stack([source.n_id[source.src_index], target.n_id[target.dst_pos_index]])
        assert torch.equal(ends, given)
        drawn = target.n_id[target.dst_neg_index]
        assert not set(zip(ends[0].tolist(), drawn.tolist(), strict=True)) & known


def test_batches_do_not_depend_on_threads():
    data = plain()
    fixed = dict(neg_sampling_ratio=1.0, batch_size=100, shuffle=True, seed=4)
    runs = [list(LinkNeighborLoader(data, [3], **fixed, num_workers=w)) for w in (0, 2)]
    for a, b in zip(*runs, strict=True):
        assert torch.equal(links_of(a), links_of(b)) and torch.equal(a.e_id, b.e_id)


def test_a_node_that_leads_to_all_has_no_triplet():
    index = torch.stack([torch.zeros(4, dtype=torch.long), torch.arange(4)])
    data = Data(x=torch.zeros(4, 1), edge_index=index)
    with pytest.raises(ValueError, match="node 0 has a link to every other one"):
        list(LinkNeighborLoader(data, [1], neg_sampling="triplet", batch_size=2))


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(edge_label_index=torch.tensor([[0], [120]])), IndexError, "none of 120"),
        (dict(edge_label_index=torch.zeros(2, 3)), TypeError, "integers of shape"),
        (dict(edge_label=torch.zeros(3)), ValueError, "3 labels for 900 links"),
        (
            dict(edge_label=torch.zeros(900), neg_sampling="triplet"),
            ValueError,
            "triplets have no labels",
        ),
        (
            dict(neg_sampling=NegativeSampling("binary", dst_weight=torch.ones(120))),
            ValueError,
            "with weights is not supported",
        ),
        (dict(data=typed()), TypeError, "a type of edges, or a pair"),
        (dict(time_attr="time"), TypeError, "time_attr"),
    ],
)
def test_bad_arguments(change: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        LinkNeighborLoader(**(dict(data=plain(), num_neighbors=[2]) | change))
