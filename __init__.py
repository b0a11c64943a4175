"""gnnc: a multi-level-IR compiler for graph neural networks.

The public names are loaded when they are first used, so that `gnn-opt` and the compiler's own
tests run where PyTorch is not installed.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from .runtime.cpu.heap import heap

if TYPE_CHECKING:
    from .frontend import morph
    from .frontend.argo.runtime import argo
    from .frontend.compiler import Options
    from .frontend.loops.declarations import DstNodes, Edges, Nodes, SrcNodes, Weights
    from .frontend.loops.errors import ProgramError
    from .frontend.torch import loader
    from .frontend.torch.checkpoints.checkpoints import load_checkpoint, save_checkpoint
    from .frontend.torch.checkpoints.file import BadCheckpoint
    from .frontend.torch.compile import compile
    from .frontend.torch.layerwise.inference import inference
    from .frontend.torch.loops.graph import Graph
    from .frontend.torch.loops.program import program
    from .frontend.torch.ranks.distribute import distribute
    from .frontend.torch.ranks.partition_folder import PartitionFolder
    from .frontend.torch.report import explain
    from .frontend.torch.step import train_step
    from .frontend.torch.training.data import load
    from .frontend.torch.training.program import training
    from .runtime.cpu.pool import release_memory
    from .runtime.ranks.world import rank, world_size

__all__ = [
    "BadCheckpoint",
    "DstNodes",
    "Edges",
    "Graph",
    "Nodes",
    "Options",
    "PartitionFolder",
    "ProgramError",
    "SrcNodes",
    "Weights",
    "argo",
    "compile",
    "distribute",
    "explain",
    "inference",
    "load",
    "load_checkpoint",
    "loader",
    "morph",
    "program",
    "rank",
    "release_memory",
    "save_checkpoint",
    "train_step",
    "training",
    "world_size",
]
__version__ = "0.1.0"

# `gnnc.dgl`, `gnnc.loader` and `gnnc.morph` lie there: a folder `dgl` here would hide DGL from
# scripts that run in a checkout.
__path__.append(str(Path(__file__).parent / "frontend" / "standins"))

heap.share()  # here, because it has to come before torch's first tensor

_HOMES = {
    "BadCheckpoint": ".frontend.torch.checkpoints.file",
    "DstNodes": ".frontend.loops.declarations",
    "Edges": ".frontend.loops.declarations",
    "Graph": ".frontend.torch.loops.graph",
    "Nodes": ".frontend.loops.declarations",
    "Options": ".frontend.compiler",
    "PartitionFolder": ".frontend.torch.ranks.partition_folder",
    "ProgramError": ".frontend.loops.errors",
    "SrcNodes": ".frontend.loops.declarations",
    "Weights": ".frontend.loops.declarations",
    "argo": ".frontend.argo.runtime",
    "compile": ".frontend.torch.compile",
    "distribute": ".frontend.torch.ranks.distribute",
    "explain": ".frontend.torch.report",
    "inference": ".frontend.torch.layerwise.inference",
    "load": ".frontend.torch.training.data",
    "load_checkpoint": ".frontend.torch.checkpoints.checkpoints",
    "program": ".frontend.torch.loops.program",
    "rank": ".runtime.ranks.world",
    "release_memory": ".runtime.cpu.pool",
    "save_checkpoint": ".frontend.torch.checkpoints.checkpoints",
    "train_step": ".frontend.torch.step",
    "training": ".frontend.torch.training.program",
    "world_size": ".runtime.ranks.world",
}

_MODULES = {"loader": ".loader", "morph": ".morph"}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value = import_module(_MODULES[name], __name__)
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
