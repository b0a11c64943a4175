"""A program as a function of torch's: for Dynamo, where it is part of a model that is compiled as a
whole, and for what torch runs of a call, second derivatives (frontend/torch/calls/replay.py).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from ...loops.as_text import GRAPH, as_text
from ...loops.values import Program
from ..importer import Imported
from ..libraries.pyg import leaves  # which defines torch.ops.gnnc

assert leaves


def torch_functions(program: Program) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function over the attributes of a graph and the program's tensors, and the one that is
    called as the program is."""
    text, name = as_text(program), f"<{program.name} in torch>"
    names: dict[str, Any] = {"torch": torch, "F": F, "leaves": torch.ops.gnnc}
    exec(compile(text, name, "exec"), names)
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    return names["main_"], names["call_"]


def as_graph(function: Callable[..., Any], imported: Imported) -> fx.GraphModule:
    """The function as a graph with the placeholders and results of its module."""
    traced = fx.symbolic_trace(function)
    *placeholders, output = (n for n in traced.graph.nodes if n.op in ("placeholder", "output"))
    for node in placeholders[len(GRAPH) :]:
        node.meta["example_value"] = torch.empty(0, device="meta")
    single = isinstance(output.args[0], fx.Node)
    found = [output.args[0]] if single else list(output.args[0])
    with traced.graph.inserting_before(output):
        for i, (result, x) in enumerate(zip(imported.results, found, strict=True)):
            found[i] = traced.graph.call_method("view_as", (x, x))
            found[i].name = result.name  # by which a replay finds it
    output.args = (found[0] if single else tuple(found),)
    traced.recompile()
    return traced
