"""Checkpoints of trainings whose learned tables are sharded over ranks."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

import gnnc
from gnnc.runtime.ranks.errors import Disagreement

from .checkpointed import assert_close, on, own_generators
from .cut_models import MakeOptimizer, graph
from .test_sharded import BOTH, NODES, OPTIMIZERS, TABLE, Learned

LONG = pytest.mark.long
AT, STEPS = 2, 4


class Run:
    """A training on the part of this rank."""

    def __init__(self, make: MakeOptimizer, model: Learned, data: Data) -> None:
        self.model, self.part = gnnc.distribute(copy.deepcopy(model), data, sharded=BOTH)
        self.optimizer = make(self.model.parameters())
        self.step = gnnc.train_step(self._loss, self.optimizer)

    def _loss(self) -> Tensor:
        return F.cross_entropy(self.model(self.part.edge_index), self.part.y)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    @property
    def objects(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer}

    def ended(self) -> tuple[Tensor, Any, Any]:
        """The numbers of its nodes, what its model holds, and its optimizer."""
        states = copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))
        return (self.part.n_id, *states)


def other() -> Learned:
    """With other parameters."""
    model = Learned()
    with torch.no_grad():
        for x in model.parameters():
            x.uniform_(-1, 1)
    return model


def whole(every: list[Any]) -> tuple[dict[str, Tensor], dict[Any, Any]]:
    """What ranks have of tables, and of what is kept for them, with all rows in their order; of the
    rest what rank 0 has."""
    nodes = torch.cat([n for n, _, _ in every]).argsort()

    def joined(of: Any) -> Tensor:
        return torch.cat([of(r) for r in every])[nodes]

    model, optimizer = every[0][1:]
    names = list(dict(Learned().named_parameters()))
    for k in BOTH:
        model[k] = joined(lambda r, k=k: r[1][k])
        kept = optimizer["state"].get(names.index(k), {})
        for key, x in kept.items():
            if isinstance(x, Tensor) and x.dim():
                kept[key] = joined(lambda r, k=k, key=key: r[2]["state"][names.index(k)][key])
    return model, optimizer["state"]


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (2, 3, "adam"),
        *(
            pytest.param(*c, n, marks=LONG)
            for c in ((1, 2), (2, 1), (2, 2), (3, 2))
            for n in ("momentum", "amsgrad", "sgd")
        ),
    ],
)
def test_goes_on(monkeypatch: Any, tmp_path: Path, before: int, after: int, name: str) -> None:
    """The file has all rows, whichever rank had them; as many ranks end with the same bits."""
    own_generators(monkeypatch)
    path, make = tmp_path / "run.pt", OPTIMIZERS[name]
    first, second, data = Learned(), other(), graph(NODES, 110)

    def stopped() -> Any:
        training = Run(make, first, data)
        training.run(AT)
        gnnc.save_checkpoint(path, **training.objects)
        saved = training.ended()
        training.run(STEPS - AT)
        return saved, training.ended()

    def resumed() -> Any:
        training = Run(make, second, data)
        assert gnnc.load_checkpoint(path, **training.objects) == {}
        loaded = training.ended()
        training.run(STEPS - AT)
        return loaded, training.ended()

    saved, ended = (whole(list(x)) for x in zip(*on(before, stopped), strict=True))
    content = gnnc.load_checkpoint(path)
    assert_close(dict(content["model"]), dict(saved[0]), 0)
    assert_close(content["optimizer"]["state"], saved[1], 0)
    loaded, again = (whole(list(x)) for x in zip(*on(after, resumed), strict=True))
    assert_close(loaded, saved, 0)
    assert_close(again, ended, 0 if before == after else 1e-9)


def test_a_model_of_one_process_takes_all_rows(tmp_path: Path) -> None:
    path, model, data = tmp_path / "run.pt", other(), graph(NODES, 110)

    def save() -> None:
        gnnc.save_checkpoint(path, model=Run(OPTIMIZERS["sgd"], model, data).model)

    on(3, save)
    found = Learned()
    assert gnnc.load_checkpoint(path, model=found) == {}
    assert_close(found.state_dict(), model.state_dict(), 0)


def test_what_does_not_fit(tmp_path: Path) -> None:
    """Sizes are those of the whole, and rows alone may be other ones."""
    path, models = tmp_path / "run.pt", [(Learned(n), graph(n, 110)) for n in (NODES, 25)]

    def work() -> None:
        saved, other = (Run(OPTIMIZERS["sgd"], *m) for m in models)
        gnnc.save_checkpoint(path, **saved.objects)
        before = copy.deepcopy(other.model.state_dict())
        said = r"bias is float64 \[30\] in the checkpoint, and float64 \[25\] in it"
        with pytest.raises(gnnc.BadCheckpoint, match=said):
            gnnc.load_checkpoint(path, model=other.model)
        said = r"parameter 0 is float64 \[30\] in the checkpoint, and float64 \[25\] in it"
        with pytest.raises(gnnc.BadCheckpoint, match=said):
            gnnc.load_checkpoint(path, optimizer=other.optimizer)
        assert_close(other.model.state_dict(), before, 0)
        copied = nn.Module()
        copied.table = nn.Parameter(saved.model.get_parameter(TABLE).detach().clone())
        with pytest.raises(Disagreement, match="model, an argument of save_checkpoint"):
            gnnc.save_checkpoint(path, model=copied)

    on(2, work)
