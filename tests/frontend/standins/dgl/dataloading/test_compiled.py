"""One compiled program serves the blocks of all batches, and is DGL's model on them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

import gnnc
import gnnc.dgl.function as fn

from ..both import ours, rows, theirs
from .graphs import NODES, graph

WIDTH = 4


class Model(nn.Module):
    """Features are read in the model, from the blocks."""

    def __init__(self, library: Any) -> None:
        super().__init__()
        self.first = library.nn.SAGEConv(3, WIDTH, "mean")
        self.second = library.nn.SAGEConv(WIDTH, 2, "mean")

    def forward(self, blocks: list[Any], x: Tensor) -> Tensor:
        weight = blocks[0].edata["w"]
        hidden = self.first(blocks[0], x * 2, edge_weight=weight).relu()
        return self.second(blocks[1], hidden) + blocks[1].dstdata["x"].mean(1, keepdim=True)


def twin(block: Any) -> Any:
    """The block in DGL, with the features that the model reads."""
    src, dst = block.edges()
    made = theirs.create_block((src, dst), block.num_src_nodes(), block.num_dst_nodes())
    made.edata["w"], made.dstdata["x"] = block.edata["w"], block.dstdata["x"]
    return made


def results(model: Any, blocks: list[Any], x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    out = model(blocks, x)
    loss = (out * rows(*out.shape)).sum()
    return [out.detach(), *torch.autograd.grad(loss, [x, *model.parameters()])]


def scaled(block: Any, x: Tensor) -> Tensor:
    with block.local_scope():
        block.srcdata["h"] = x * block.srcdata["x"]
        block.update_all(fn.u_mul_e("h", "w", "m"), fn.sum("m", "h"))
        return block.dstdata["h"] + block.dstdata["x"]


def test_features_that_are_gathered_in_a_trace():
    """They are not gathered where none asks for them, and the graph stays as it was."""
    counter = CompileCounter()
    torch._dynamo.reset()
    compiled = torch.compile(scaled, backend=counter, dynamic=True, fullgraph=True)
    g, sampler = graph(ours), ours.dataloading.NeighborSampler([3])
    for seeds in (torch.arange(5), torch.arange(20), torch.arange(11)):
        inputs, _, (block,) = sampler.sample(g, seeds)
        x = rows(inputs.shape[0], 3)
        found = compiled(block, x)
        assert set(dict.keys(block._source_frames["_N"])) == {"_ID"}
        torch.testing.assert_close(found, scaled(block, x))
    assert counter.frame_count == 1


@pytest.mark.long
def test_one_program_for_all_batches():
    g = graph(ours)
    mine, real = Model(ours), Model(theirs)
    real.load_state_dict(mine.state_dict())
    compiled = gnnc.compile(mine)
    sampler = ours.dataloading.NeighborSampler([3, 2])
    loader = ours.dataloading.DataLoader(
        g, torch.arange(NODES), sampler, batch_size=13, shuffle=True, seed=1
    )
    assert len(loader) == 5
    for input_nodes, _, blocks in loader:
        x = g.ndata["x"][input_nodes]
        wanted = results(real, [twin(block) for block in blocks], x)
        torch.testing.assert_close(results(compiled, blocks, x), wanted, rtol=1e-4, atol=1e-5)
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and len(report.programs) == 1


@pytest.mark.long
def test_a_compiled_step_on_all_batches():
    """Features and labels are gathered by the program of the step."""
    g, eager = graph(ours), Model(ours)
    model = copy.deepcopy(eager)

    def loss(model: nn.Module, blocks: list[Any]) -> Tensor:
        out = model(blocks, blocks[0].srcdata["x"])
        return nn.functional.cross_entropy(out, blocks[-1].dstdata["y"] % 2)

    step = gnnc.train_step(
        lambda blocks: loss(model, blocks), torch.optim.SGD(model.parameters(), lr=0.1)
    )
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.1)
    sampler = ours.dataloading.NeighborSampler([3, 2], prefetch_node_feats=["x"])
    loader = ours.dataloading.DataLoader(
        g, torch.arange(NODES), sampler, batch_size=16, shuffle=True, num_workers=1, seed=0
    )
    for _ in range(2):
        for _, _, blocks in loader:
            optimizer.zero_grad()
            wanted = loss(eager, blocks)
            wanted.backward()
            optimizer.step()
            torch.testing.assert_close(step(blocks).detach(), wanted.detach())
    for mine, real in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(mine, real, rtol=1e-4, atol=1e-5)
    report = gnnc.explain(step)
    assert report.fallbacks == [] and len(report.programs) == 1
