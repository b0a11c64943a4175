"""Runs models of the zoo built with the address and undefined-behaviour sanitizers, for
test_sanitizer: kernels of phases and of graph structure, every buffer an allocation of its own."""

from __future__ import annotations

import sys

import torch
from codegen.separate import SeparatePhase

import gnnc
from gnnc.runtime import program
from gnnc.runtime.cpu import toolchain
from gnnc.runtime.sets.sets import kernels

from . import zoo

SIZES = ((20, 64), (64, 64), (27, 9))


def run(name: str) -> None:
    """Calls the model on graphs of several sizes, with gradients where it has any."""
    make, arguments = zoo.ZOO[name]
    compiled = gnnc.compile(make(), sanitize=True)
    for nodes, edges in SIZES:
        outputs = [t for t in zoo.tensors(compiled(*arguments(nodes, edges, 1))) if t.requires_grad]
        if outputs:
            torch.stack([y.sum() for y in outputs]).sum().backward()


def run_step() -> None:
    """Steps of training in one call, with an update in place."""
    make, arguments = zoo.ZOO["GCNConv"]
    model = gnnc.compile(make(), sanitize=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step = gnnc.train_step(lambda x, e: model(x, e).square().mean(), optimizer, sanitize=True)
    for nodes, edges in SIZES:
        step(*arguments(nodes, edges, 1))


def main(names: list[str]) -> None:
    program.PhaseOnGraph = SeparatePhase
    source = "#define GRAIN 1\n" + kernels.source()
    library = kernels.bind(toolchain.compile_source(source, sanitize=True))
    kernels._library = lambda: library
    for name in names:
        run_step() if name == "train_step" else run(name)
        print("checked", name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
