"""`gnnc.inference`: exact outputs of all nodes in bounded memory."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from xdsl.utils.exceptions import PassFailedException

from ...compiler import Options
from ..capture.capture import dynamo_compile
from ..compile import imported_graph
from ..ranks import cut_tensors
from ..taken_options import taken
from .program import Call, LayerProgram


class Inference:
    """A model that is computed layer by layer, called as the model itself.

    What a call takes is bounded: rows of nodes that layers hand on (one matrix for each value that
    a later layer reads), and for one chunk of `batch_size` rows its edges. `peak_bytes` is the most
    that lived at a time in the last call, counted, without the arguments and the integers of the
    graph.

    Attributes:
        peak_bytes: see above; 0 before the first call.
        stages: how many passes over the nodes the programs compiled so far make, by program.
    """

    def __init__(
        self, model: Callable[..., Any], batch_size: int, folder: Path | None, options: Options
    ) -> None:
        self.batch_size = batch_size
        self.folder = folder
        self.options = options
        self.peak_bytes = 0
        self.programs: list[LayerProgram] = []
        self.here = threading.local()
        fn = model._call_impl if isinstance(model, nn.Module) else model
        self.call = dynamo_compile(fn, self.backend, fullgraph=True)

    @property
    def stages(self) -> list[int]:
        return [len(p.stages) for p in self.programs]

    def backend(self, graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        """Dynamo's backend."""
        if cut_tensors.kinds(examples):
            raise ValueError("gnnc.inference takes whole graphs, not rows of one rank of several")
        imported = imported_graph(graph, examples)
        if imported.device != "cpu":
            raise ValueError(
                f"gnnc.inference runs on the CPU, the tensors are on {imported.device}"
            )
        try:
            program = LayerProgram(imported, self.options)
        except PassFailedException as error:
            raise ValueError(f"gnnc.inference: {error}") from error
        self.programs.append(program)
        return functools.partial(self.run, program)

    def run(self, program: LayerProgram, *args: Any) -> Any:
        return program(args, self.here.call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The model's outputs for all rows, as `model(*args, **kwargs)` gives them, without
        gradients."""
        self.here.call = call = Call(self.batch_size, self.folder)
        with torch.no_grad():
            out = self.call(*args, **kwargs)
        self.peak_bytes = call.peak_bytes
        return out


def inference(
    model: Callable[..., Any],
    /,
    *,
    batch_size: int = 4096,
    folder: str | Path | None = None,
    **options: Any,
) -> Inference:
    """A model for whole graphs in bounded memory: the numbers of `model(x, edge_index)` for all
    nodes, computed layer by layer in chunks of nodes, with all in-edges and no neighbourhood
    computed twice.

    The parameters are those that the model has when it is called, so one object serves all epochs;
    nothing is compiled again after a step of an optimizer. The model's mode is left as it is.

    Args:
        model: an `nn.Module` (compiled or not) or a function of tensors on the CPU.
        batch_size: how many rows of nodes are computed at a time.
        folder: a folder for the rows that layers hand on, and for results: files that are mapped
            into memory, and gone with the last reference. None: in memory.
        **options: see `gnnc.Options`. Those that are not given are taken over from a compiled
            module as `gnnc.train_step` does.

    Raises:
        TypeError: `model` cannot be called, or an option is not known.
        ValueError: `batch_size` is no positive integer, or `folder` is no folder.

    Calls raise what the model raises, and ValueError where the model cannot be computed so: what,
    and why (it draws random numbers or edits statistics, as models in training do; it asks for rows
    by their number in several sets that were put together).
    """
    if not callable(model):
        raise TypeError(f"gnnc.inference takes a module or a function, not {type(model).__name__}")
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"batch_size is a positive integer, not {batch_size!r}")
    if folder is not None and not Path(folder).is_dir():
        raise ValueError(f"folder: {folder} is no folder")
    chosen = taken(model.parameters() if isinstance(model, nn.Module) else (), options)
    return Inference(model, batch_size, None if folder is None else Path(folder), chosen)
