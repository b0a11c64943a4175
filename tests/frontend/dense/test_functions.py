"""What functions of dense batches are in terms of rows: eager's numbers and gradients, in one
program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import to_dense_batch

from gnnc.frontend.torch.dense.functions import FUNCTIONS

from .checked import BATCH, GRAPHS, WIDTH, Model, check


def shifted(d: Tensor, m: Tensor) -> Tensor:
    """Scores of all nodes of a graph with each other."""
    return (d @ d.transpose(1, 2)).masked_fill(~m[:, None, :], -torch.inf)


def put(d: Tensor, m: Tensor) -> Tensor:
    y = d * 2
    y[~m] = 0.5
    return y.sum(1)


def filled_in_place(d: Tensor, m: Tensor) -> Tensor:
    y = d * 2
    y.masked_fill_(~m.unsqueeze(-1), 0.0)
    return y.sum(1)


W = torch.arange(3.0 * WIDTH, dtype=torch.float64).reshape(3, WIDTH).sin()

CASES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    # of each number, broadcast
    "add": lambda d, m: (1.5 - d * d.relu() + 2).exp()[m],
    "to": lambda d, m: (d * m.unsqueeze(-1).to(d.dtype)).sum(1),
    "float": lambda d, m: (m.float().unsqueeze(-1).double() * d).sum(1),
    "double": lambda d, m: (~m).double().unsqueeze(2) + d,
    "contiguous": lambda d, m: d.transpose(1, 2).contiguous().transpose(1, 2)[m],
    "detach": lambda d, m: (d * d.detach())[m],
    "dropout": lambda d, m: F.dropout(d, 0.5, False)[m] + F.dropout(d, 0.0, True)[m],
    "masked_fill": lambda d, m: d.exp().masked_fill(~m.unsqueeze(-1), 0.25).sum(1),
    "where": lambda d, m: torch.where(m.unsqueeze(2), d.cos(), 0.5).mean(1),
    "zeros_like": lambda d, m: (torch.zeros_like(d) + d)[m],
    "ones_like": lambda d, m: (torch.ones_like(m, dtype=d.dtype).unsqueeze(2) * d).sum(1),
    "full_like": lambda d, m: torch.full_like(d, 0.5) * d,
    "of-graphs": lambda d, m: (d - d.mean(1, keepdim=True)).tanh()[m],
    "of-graphs-before": lambda d, m: (d.sum(1)[:, None, :] / (1 + d.square()))[m],
    # along columns
    "linear": lambda d, m: F.linear(d, W)[m],
    "layer_norm": lambda d, m: F.layer_norm(d, (WIDTH,))[m],
    "rms_norm": lambda d, m: F.rms_norm(d, (WIDTH,)),
    "log_softmax": lambda d, m: d.log_softmax(-1)[m],
    "softmin": lambda d, m: F.softmin(d, dim=2)[m],
    "normalize": lambda d, m: F.normalize(d + 3, dim=-1)[m],
    "cumsum": lambda d, m: d.cumsum(-1)[m],
    "cumprod": lambda d, m: d.cumprod(2)[m],
    "flip": lambda d, m: d.flip(-1)[m],
    "softmax": lambda d, m: d.softmax(-1).sum(1),
    "amax": lambda d, m: d.amax(-1)[m],
    "amin": lambda d, m: d.amin((2,), keepdim=True)[m],
    "prod": lambda d, m: d.prod(-1)[m],
    "logsumexp": lambda d, m: d.logsumexp(-1).sum(1),
    "var": lambda d, m: d.var(-1)[m],
    "std": lambda d, m: d.std(2)[m],
    "norm": lambda d, m: d.norm(dim=-1)[m],
    "any": lambda d, m: (d * (d > 0).any(-1, keepdim=True))[m],
    "all": lambda d, m: (d * (d > -0.5).all(-1, keepdim=True))[m],
    "argmax": lambda d, m: (d * d.argmax(-1, keepdim=True))[m],
    "argmin": lambda d, m: (d * d.argmin(-1, keepdim=True))[m],
    "sum-of-columns": lambda d, m: d.sum(-1).sum(1),
    "mean-of-columns": lambda d, m: d.mean((2,), keepdim=True).square()[m],
    # over places: those behind the rows count
    "sum": lambda d, m: d.exp().sum(1),
    "mean": lambda d, m: (d + 1).mean(dim=1, keepdim=True),
    "sum-behind": lambda d, m: d.transpose(1, 2).cos().sum(-1),
    # moves
    "permute": lambda d, m: d.permute(2, 0, 1).permute(1, 2, 0)[m],
    "transpose": lambda d, m: d.transpose(0, 1).transpose(1, 0)[m],
    "swapaxes": lambda d, m: d.swapaxes(0, 2).swapaxes(0, 2)[m],
    "swapdims": lambda d, m: d.swapdims(1, 2).swapdims(1, 2)[m],
    "movedim": lambda d, m: d.movedim(2, 0).movedim(0, 2)[m],
    "moveaxis": lambda d, m: d.moveaxis(0, 1).moveaxis(0, 1)[m],
    "mT": lambda d, m: d.mT.mT[m],
    "t": lambda d, m: d[:, :, 0].t().t()[m],
    "T": lambda d, m: d[..., 1].T.T[m],
    "unsqueeze": lambda d, m: d.unsqueeze(1).unsqueeze(-1).squeeze(1)[m],
    "squeeze": lambda d, m: d.unsqueeze(-1).squeeze(-1).squeeze(2)[m],
    "view": lambda d, m: d.view(d.size(0), d.size(1), 2, 2).sum(-1)[m],
    "reshape": lambda d, m: d.reshape(d.size(0), -1, 2, 2).reshape(d.size(0), -1, WIDTH)[m],
    "flatten": lambda d, m: d.unflatten(-1, (2, 2)).exp().flatten(2)[m],
    "unflatten": lambda d, m: d.unflatten(-1, (1, 2, 2)).transpose(2, 4).flatten(-3)[m],
    "_unsafe_view": lambda d, m: torch.ops.aten._unsafe_view(d, [d.size(0), d.size(1), 2, 2])[m],
    "expand": lambda d, m: (d[:, :, :1].expand(-1, -1, WIDTH) * d)[m],
    "cat": lambda d, m: torch.cat([d, d.exp()], -1)[m],
    "concat": lambda d, m: torch.concat([d, d * 2], 2)[m],
    "concatenate": lambda d, m: torch.concatenate((d, d - 1), dim=2).sum(1),
    "chunk": lambda d, m: sum(t.exp() for t in d.chunk(2, -1))[m],
    "split": lambda d, m: d.split(3, -1)[0][m],
    "split_with_sizes": lambda d, m: d.split_with_sizes([1, 3], -1)[1].sum(1),
    "tensor_split": lambda d, m: d.tensor_split(2, dim=2)[1][m],
    "unbind": lambda d, m: (d.unbind(-1)[0] * d.unbind(2)[3])[m],
    "getitem": lambda d, m: (d[..., 1:] * d[:, :, None, 0])[m],
    "setitem": put,
    "edit": filled_in_place,
    # products
    "matmul": lambda d, m: (d @ W.t())[m],
    "bmm": lambda d, m: torch.bmm(d, torch.bmm(d.transpose(1, 2), d))[m],
    "mm": lambda d, m: torch.einsum("bpf,bpg->bfg", d, d.masked_fill(~m[:, :, None], 0.0)),
    "einsum": lambda d, m: torch.einsum("...f,gf->...g", d, W)[m],
    "pairs": lambda d, m: (shifted(d, m).softmax(-1) @ d)[m],
    "pairs-of-heads": lambda d, m: (
        torch.einsum("bphd,bqhd->bhpq", d.unflatten(-1, (2, 2)), d.unflatten(-1, (2, 2)))
        .masked_fill(~m[:, None, None, :], -torch.inf)
        .softmax(-1)
        .matmul(d.unflatten(-1, (2, 2)).transpose(1, 2))
        .transpose(1, 2)[m]
    ),
    "distances": lambda d, m: (
        ((d[:, :, None] - d[:, None]).square().sum(-1).neg().exp() * m[:, None, :]) @ d
    )[m],
    "scaled_dot_product_attention": lambda d, m: F.scaled_dot_product_attention(
        d, d.tanh(), d.exp(), attn_mask=m[:, None, :]
    )[m],
    "linear-attention": lambda d, m: (
        d.sigmoid() @ (d.exp().transpose(1, 2) @ (d * m.unsqueeze(-1)))
    )[m],
}

SHOWN = {"double", "full_like", "rms_norm"}
"""The cases whose result is a dense batch, which torch fills."""

ELSEWHERE = {"multi_head_attention_forward"}
"""Functions that the tests of models have."""


def dense(case: Callable[[Tensor, Tensor], Any], size: int | None) -> Callable[..., Any]:
    def function(x: Tensor, batch: Tensor, layer: Any) -> Any:
        d, m = to_dense_batch(x, batch, batch_size=size)
        return case(d, m)

    return function


def test_all_functions_have_a_case() -> None:
    assert FUNCTIONS.keys() - ELSEWHERE <= CASES.keys()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [GRAPHS, None])
@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, size: int | None) -> None:
    more = torch.tensor([0, 1, 1, 1, 1, 2, 3, 3, 4, 4, 4])
    report = check(Model(dense(CASES[name], size)), (BATCH, more, BATCH))
    assert (report.fallbacks == []) == (name not in SHOWN)
    assert report.graphs == 1
