"""`gnnc.inference` gives the numbers of the model on the whole graph, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import gnnc
from gnnc.frontend.torch.layerwise import program
from gnnc.frontend.torch.layerwise.inference import Inference

from .models import CASES, NODES, Case, case, edge_index, layers_of

BATCHES = (1, 7, NODES + 1)


@pytest.fixture(autouse=True, scope="module")
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def gcn() -> tuple[Case, Inference]:
    """A model of three layers that was computed once."""
    made = case("gcn")
    infer = gnnc.inference(made.model, batch_size=9)
    check(made, infer)
    return made, infer


def check(made: Case, infer: Inference) -> None:
    """The results are those of the model, in torch, to 1e-12."""
    with torch.no_grad():
        want = made.model._call_impl(*made.args, **made.kwargs)
    got = infer(*made.args, **made.kwargs)
    leaves, structure = pytree.tree_flatten(want)
    found, same = pytree.tree_flatten(got)
    assert same == structure
    for x, y in zip(leaves, found, strict=True):
        assert not y.requires_grad
        torch.testing.assert_close(y, x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("batch_size", BATCHES)
def test_any_batch_size(gcn: tuple[Case, Inference], batch_size: int) -> None:
    made, infer = gcn
    infer.batch_size = batch_size
    check(made, infer)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_models(name: str) -> None:
    made = case(name)
    infer = gnnc.inference(made.model)
    for batch_size in BATCHES:
        infer.batch_size = batch_size
        check(made, infer)
    assert len(infer.programs) == 1


def test_a_graph_of_another_size(gcn: tuple[Case, Inference]) -> None:
    made, infer = gcn
    x, edges = torch.randn(61, 6), edge_index(61, 61, 200)
    check(Case(made.model, (x, edges)), infer)
    assert len(infer.programs) == 1


def test_between_epochs(gcn: tuple[Case, Inference], monkeypatch: pytest.MonkeyPatch) -> None:
    """New parameters are seen, nothing is compiled, and the model is left as it was."""
    made, infer = gcn
    optimizer = torch.optim.Adam(made.model.parameters(), 0.1)

    def compiled(*_: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(program, "compile_module", compiled)
    for _ in range(2):
        made.model.train()
        optimizer.zero_grad()
        made.model(*made.args).square().mean().backward()
        optimizer.step()
        made.model.eval()
        gradients = [p.grad for p in made.model.parameters()]
        before = {k: v.clone() for k, v in made.model.state_dict().items()}
        check(made, infer)
        assert not made.model.training and not infer(*made.args).requires_grad
        assert all(p.grad is g for p, g in zip(made.model.parameters(), gradients, strict=True))
        for name, value in made.model.state_dict().items():
            torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_rows_in_files(
    gcn: tuple[Case, Inference], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, infer = gcn
    monkeypatch.setattr(infer, "folder", tmp_path)
    check(made, infer)
    out = infer(*made.args)
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert str(tmp_path) in maps.read_text()
    assert not list(tmp_path.iterdir())
    assert out.shape == (NODES, 3)


@pytest.mark.long
def test_layers_that_are_alike_share_a_program(gcn: tuple[Case, Inference]) -> None:
    made, _ = gcn
    model = pyg.GCN(8, 8, 5)
    infer = gnnc.inference(model.eval(), batch_size=9)
    check(Case(model, (torch.randn(NODES, 8), made.args[1])), infer)
    (stages,) = infer.programs
    assert len({id(p) for p in stages.programs}) < len(stages.stages)


@pytest.mark.long
@pytest.mark.parametrize("conv", [pyg.GCNConv, pyg.SAGEConv, pyg.GATConv])
def test_memory_does_not_grow_with_edges_times_width(conv: Any) -> None:
    """A chunk keeps a few integers for each of its edges, and no row of features."""
    nodes, width, batch_size, few, many = 600, 64, 30, 5, 160
    model = nn.ModuleList([conv(16, width), conv(width, width), conv(width, 16)])

    def layers(x: Tensor, edges: Tensor) -> Tensor:
        for layer in model:
            x = layer(x, edges)
        return x

    infer = gnnc.inference(layers, batch_size=batch_size)
    peaks: list[int] = []
    for degree in (few, many):
        ends = torch.arange(degree * nodes)
        edges = torch.stack([torch.randint(0, nodes, ends.shape), ends % nodes])
        infer(torch.randn(nodes, 16), edges)
        peaks.append(infer.peak_bytes)
    in_chunk = (many - few) * batch_size
    assert peaks[1] - peaks[0] <= 16 * in_chunk + 1024
    assert peaks[1] < many * nodes * width * 8 / 10


# ---------------------------------------------------------------- what is refused


class Sorted(nn.Module):
    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]]).sort(0)[0]


def test_batchnorm_in_training() -> None:
    model = pyg.BatchNorm(6).train()
    with pytest.raises(ValueError, match=r"edits .*running_mean.* call model.eval\(\) first"):
        gnnc.inference(model)(torch.randn(NODES, 6))
    assert model.training


def test_dropout_in_training() -> None:
    model = pyg.GCN(6, 8, 2, dropout=0.5).train()
    with pytest.raises(ValueError, match=r"random numbers.* call model.eval\(\) first"):
        gnnc.inference(model)(torch.randn(NODES, 6), edge_index())


def test_what_has_no_rule_is_named_with_its_place() -> None:
    with pytest.raises(Exception, match=r"sort: gnnc has no rule for it \(.*test_inference.py:"):
        gnnc.inference(Sorted())(*case("gcn").args)


def test_an_index_out_of_range(gcn: tuple[Case, Inference]) -> None:
    made, infer = gcn
    x, edges = made.args
    with pytest.raises(
        IndexError, match=r"graph_0\[1\]\[\d+\] is \d+, but it must be between 0 and 19"
    ):
        infer(x[: NODES // 2], edges)


def test_arguments() -> None:
    model = layers_of(pyg.GCNConv)
    with pytest.raises(TypeError, match="a module or a function, not int"):
        gnnc.inference(3)  # type: ignore[arg-type]
    for size in (0, -1, True, 2.5):
        with pytest.raises(ValueError, match="batch_size is a positive integer"):
            gnnc.inference(model, batch_size=size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="folder: nowhere is no folder"):
        gnnc.inference(model, folder="nowhere")
    with pytest.raises(TypeError, match="colour"):
        gnnc.inference(model, colour="red")
