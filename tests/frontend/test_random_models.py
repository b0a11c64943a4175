"""Random programs over node, edge and single rows: compiled, they equal torch."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import scatter, softmax

import gnnc

from .equality import assert_interchangeable, random_edges

Step = Callable[[nn.Module, dict[str, Tensor], Tensor], Tensor]

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": F.elu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": lambda x: torch.exp(x.clamp(max=2.0)),
    "softplus": F.softplus,
    "gelu": F.gelu,
    "abs": torch.abs,
    "square": lambda x: x * x,
    "neg": lambda x: -x,
    "scale": lambda x: 0.5 * x + 1,
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "log": lambda x: torch.log1p(x.abs()),
    "norm": lambda x: F.normalize(x, dim=-1),
    "log_softmax": lambda x: F.log_softmax(x, dim=-1),
    "center": lambda x: x - x.mean(dim=-1, keepdim=True),
    "where": lambda x: torch.where(x > 0.1, x, 0.3 * x),
    "detached": lambda x: x * x.detach().tanh(),
    "square root": lambda x: torch.sqrt(x * x + 0.5),
    "largest": lambda x: x / (1 + x.amax(dim=-1, keepdim=True).abs()),
    "flip": lambda x: torch.cat([x[:, x.size(1) // 2 :], x[:, : x.size(1) // 2]], dim=1),
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": lambda a, b: a / (b * b + 1),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "gate": lambda a, b: torch.where(b > 0, a, b),
    "column": lambda a, b: a * b.sum(dim=-1, keepdim=True),
    "dot": lambda a, b: (a * b).sum(dim=-1, keepdim=True) + a,
}
REDUCE = ("sum", "mean", "max", "min")
WIDTH = 6


class Program(nn.Module):
    """A random program of `steps` steps; `source` tells how it was made."""

    def __init__(self, seed: int, steps: int) -> None:
        super().__init__()
        self.draw = random.Random(seed)
        self.layers = nn.ModuleList()
        self.steps: list[tuple[str, Step]] = []
        self.text: list[str] = []
        self.kinds = {"x": "N", "w": "E"}
        for k in range(steps):
            self.grow(f"v{k}")
        last = [v for v, kind in self.kinds.items() if kind == "N"][-2:]
        rest = [v for v in list(self.kinds)[2:] if v not in last]
        self.wanted = [*last, *rest[-1:]]
        del self.draw

    def pick(self, kind: str) -> str:
        """A value of that kind, most likely a late one."""
        names = [v for v, k in self.kinds.items() if k == kind]
        return names[-1] if self.draw.random() < 0.6 else self.draw.choice(names)

    def add(self, name: str, kind: str, text: str, step: Step) -> None:
        self.kinds[name] = kind
        self.text.append(f"{name}: {kind} = {text}")
        self.steps.append((name, step))

    def grow(self, name: str) -> None:
        draw = self.draw
        what = draw.choice(
            ["unary", "unary", "binary", "binary", "linear", "gather", "gather", "reduce", "reduce"]
            + ["softmax", "total", "spread", "cat", "matrix"]
        )
        kind = draw.choice(["N", "E"])
        side = draw.choice([0, 1])
        a, b = self.pick(kind), self.pick(kind)
        if what == "unary":
            fn = draw.choice(list(UNARY))
            self.add(name, kind, f"{fn}({a})", lambda m, v, e: UNARY[fn](v[a]))
        elif what == "binary":
            fn = draw.choice(list(BINARY))
            self.add(name, kind, f"{fn}({a}, {b})", lambda m, v, e: BINARY[fn](v[a], v[b]))
        elif what in ("linear", "cat"):
            k = len(self.layers)
            many = 1 if what == "linear" else 2
            self.layers.append(nn.Linear(many * WIDTH, WIDTH, bias=draw.random() < 0.7))
            xs = (a, b)[:many]

            def linear(m: Any, v: dict[str, Tensor], e: Tensor) -> Tensor:
                return m.layers[k](torch.cat([v[x] for x in xs], dim=-1))

            self.add(name, kind, f"linear({', '.join(xs)})", linear)
        elif what == "gather":
            x = self.pick("N")
            self.add(name, "E", f"{x}[e[{side}]]", lambda m, v, e: v[x][e[side]])
        elif what == "reduce":
            x, how = self.pick("E"), draw.choice(REDUCE)

            def reduce(m: Any, v: dict[str, Tensor], e: Tensor) -> Tensor:
                return scatter(v[x], e[side], dim=0, dim_size=v["x"].size(0), reduce=how)

            self.add(name, "N", f"{how} of {x} at e[{side}]", reduce)
        elif what == "softmax":
            x = self.pick("E")

            def weights(m: Any, v: dict[str, Tensor], e: Tensor) -> Tensor:
                return softmax(v[x], e[side], num_nodes=v["x"].size(0))

            self.add(name, "E", f"softmax of {x} at e[{side}]", weights)
        elif what == "total":
            how = draw.choice(["sum", "mean"])

            def total(m: Any, v: dict[str, Tensor], e: Tensor) -> Tensor:
                t = v[a].sum(dim=0) if how == "sum" else v[a].sum(dim=0) / (v[a].size(0) + 1)
                return v[b] + 0.1 * torch.tanh(t)

            self.add(name, kind, f"{b} + {how} of all {a}", total)
        elif what == "spread":
            x = self.pick("N")

            def spread(m: Any, v: dict[str, Tensor], e: Tensor) -> Tensor:
                zeros = torch.zeros_like(v[x])
                return zeros.index_add(0, e[side], v[x][e[1 - side]])

            self.add(name, "N", f"neighbours of {x} to {side}", spread)
        else:
            k = len(self.layers)
            self.layers.append(nn.Linear(WIDTH, WIDTH, bias=False))

            def matrix(m: Any, v: dict[str, Tensor], e: Tensor) -> Tensor:
                heads = (v[a] @ m.layers[k].weight).view(-1, 2, WIDTH // 2)
                return (heads * v[b].view(-1, 2, WIDTH // 2).sum(-1, keepdim=True)).flatten(1)

            self.add(name, kind, f"heads of {a} by {b}", matrix)

    def forward(self, x: Tensor, edge_index: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        values = {"x": x, "w": w}
        for name, step in self.steps:
            # rows stay of moderate size
            values[name] = 2 * torch.tanh(0.5 * step(self, values, edge_index))
        return tuple(values[v] for v in self.wanted)


def check(seed: int, dtype: torch.dtype = torch.float64) -> None:
    torch.manual_seed(seed)
    eager = Program(seed, 4 + seed % 12).to(dtype)
    compiled = gnnc.compile(copy.deepcopy(eager))
    for k, (nodes, edges) in enumerate([(11, 40), (25, 30), (1, 3), (6, 0), (3, 50)]):
        shape = ("uniform", "hub", "loops", "uniform", "parallel")[k]
        g = random_edges(seed + k, nodes, nodes, edges, shape)
        x = torch.randn(nodes, WIDTH, dtype=dtype, requires_grad=True)
        w = torch.randn(edges, WIDTH, dtype=dtype, requires_grad=True)
        try:
            assert_interchangeable(eager, compiled, (x, g.index, w), k, together=True)
        except Exception as error:
            error.add_note("\n".join([f"seed {seed}, {shape} {nodes} x {edges}:", *eager.text]))
            raise
    assert gnnc.explain(compiled).fallbacks == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(8))
def test_random_program(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 150))
def test_more_random_programs(seed: int) -> None:
    check(seed)
