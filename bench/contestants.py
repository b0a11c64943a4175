"""The contestants of `gnnc bench`: each makes the same model ready to train on one graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from ..frontend.tools.children import Refused
from ..frontend.tools.models import warm_up
from .tasks import PlainTask, Task, TypedTask


@dataclass(frozen=True)
class Prepared:
    """A contestant's model with what it is called on.

    A call gives the loss where `y` is None, and otherwise what is compared with `y`. `inputs_of`
    makes the inputs of another task, on whose graph the first call builds structure; it is None
    where that is done beforehand or never.
    """

    model: nn.Module
    inputs: tuple[Any, ...]
    y: Tensor | None
    inputs_of: Callable[[Task], tuple[Any, ...]] | None = None

    def inputs_on(self, other: Task | None) -> tuple[Any, ...]:
        """What the model is called on, on another graph where one is given."""
        if other is None:
            return self.inputs
        assert self.inputs_of is not None
        return self.inputs_of(other)

    def loss(self, other: Task | None = None) -> Tensor:
        """The mean cross-entropy over all rows of the result, on another graph where one is
        given."""
        out = self.model(*self.inputs_on(other))
        return out if self.y is None else F.cross_entropy(out, self.y)

    def training(self, optimizer: Optimizer) -> Training:
        """How it trains."""

        def step(other: Task | None) -> Tensor:
            optimizer.zero_grad()
            loss = self.loss(other)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return Training(step, self.model)

    def predicting(self) -> Training:
        """How it predicts: a step is the loss of a prediction, and nothing is differentiated."""
        self.model.eval()

        def step(other: Task | None) -> Tensor:
            with torch.no_grad():
                return self.loss(other)

        return Training(step, self.model)


@dataclass(frozen=True)
class Training:
    """`step` trains one step, on another graph where one is given, and returns the loss before it;
    `compiled` is what `gnnc.explain` knows, if gnnc compiled it."""

    step: Callable[[Task | None], Tensor]
    compiled: Any


@dataclass(frozen=True)
class PreparedWhole(Prepared):
    """A contestant whose step is one compiled function, with these options."""

    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def training(self, optimizer: Optimizer) -> Training:
        import gnnc

        compiled = gnnc.train_step(self.model, optimizer, **self.options)
        return Training(lambda other: compiled(*self.inputs_on(other)), compiled)


class Step(nn.Module):
    """A model whose call computes the loss as well."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, y: Tensor, *inputs: Any) -> Tensor:
        return F.cross_entropy(self.model(*inputs), y)


def pyg(task: Task) -> Prepared:
    """PyG as most people use it: an edge_index and one message per edge."""
    return Prepared(task.model(), task.inputs, task.y)


def pyg_sparse(task: Task) -> Prepared:
    """PyG as its documentation advises where memory is short: a CSR matrix of torch.sparse."""
    from torch_geometric.utils import to_torch_csr_tensor

    if not isinstance(task, PlainTask) or task.kind == "gat":
        raise Refused("PyG multiplies with sparse matrices in GCN, GraphSAGE and GIN")
    nodes = len(task.x)
    torch.sparse.check_sparse_tensor_invariants.disable()  # what it does anyway, and warns of
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        adjacency = to_torch_csr_tensor(task.edge_index.flip(0), size=(nodes, nodes))
    return Prepared(task.model(), (task.x, adjacency), task.y)


def pyg_fast(task: Task) -> Prepared:
    """PyG's faster RGCN: all edges at once, each with the matrix of its relation."""
    if not isinstance(task, TypedTask) or task.kind != "rgcn":
        raise Refused("PyG has a faster layer for RGCN alone")
    return pyg(replace(task, kind="rgcn-fast"))


def gnnc(task: Task, **options: Any) -> Prepared:
    """The first contestant's model, compiled; `options` are those of `gnnc.compile`."""
    import gnnc

    model = task.model()  # before the warm-up, which draws random numbers too
    warm_up(gnnc.compile)
    compiled = gnnc.compile(model, **options)
    return Prepared(compiled, task.inputs, task.y, lambda other: other.inputs)


def gnnc_step(task: Task, **options: Any) -> Prepared:
    """The same with the loss inside what is compiled."""
    import gnnc

    model = Step(task.model())
    warm_up(gnnc.compile)
    compiled = gnnc.compile(model, **options)
    inputs = (task.y, *task.inputs)
    return Prepared(compiled, inputs, None, lambda other: (other.y, *other.inputs))


def gnnc_train(task: Task, **options: Any) -> Prepared:
    """Loss, gradients and Adam's update as one compiled function."""
    import gnnc

    model = Step(task.model())
    warm_up(gnnc.compile)
    inputs = (task.y, *task.inputs)
    return PreparedWhole(model, inputs, None, lambda other: (other.y, *other.inputs), options)


def dgl(task: Task) -> Prepared:
    """DGL's layers on a DGL graph."""
    from . import dgl_shim

    dgl_shim.install()
    from .dgl_models import model_and_inputs

    return Prepared(*model_and_inputs(task), task.y)


def floor(task: Task) -> Prepared:
    """Loss and gradients in C written by hand."""
    from .floor.models import PROGRAMS

    if task.kind not in PROGRAMS:
        raise Refused(f"there are programs written by hand of {', '.join(PROGRAMS)}")
    try:
        model = PROGRAMS[task.kind](task.model(), *task.inputs)
    except ValueError as error:
        raise Refused(f"the program written by hand: {error}") from error
    return Prepared(model, (task.inputs[0], task.y), None)


CONTESTANTS: dict[str, Callable[..., Prepared]] = {
    "gnnc": gnnc,
    "gnnc-step": gnnc_step,
    "gnnc-train": gnnc_train,
    "pyg": pyg,
    "pyg-sparse": pyg_sparse,
    "pyg-fast": pyg_fast,
    "dgl": dgl,
    "floor": floor,
}
