"""`gnnc.load`: the arrays of a graph, from files or a data set, under names of their own."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

KINDS = "biuf"
"""NumPy's kinds of numbers that a tensor can hold."""


class GraphArrays:
    """Arrays by name, as attributes and by key: `data.x`, `data["x"]`.

    Attributes:
        num_nodes: rows of `x`; without it one more than the greatest number in `edge_index`.
        num_features: columns of `x`.
        num_edges: columns of `edge_index`.
        num_classes: one more than the greatest class in `y`; columns of `y` where it has some.
    """

    def __init__(self, arrays: Mapping[str, Tensor]) -> None:
        self._arrays = dict(arrays)

    def __getattr__(self, name: str) -> Tensor:
        arrays: dict[str, Tensor] = self.__dict__.get("_arrays", {})
        if name not in arrays:
            raise AttributeError(f"the data has no array {name!r}; it has {', '.join(arrays)}")
        return arrays[name]

    def __getitem__(self, name: str) -> Tensor:
        try:
            return getattr(self, name)
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    @property
    def num_nodes(self) -> int:
        if "x" in self._arrays:
            return self.x.shape[0]
        return int(self.edge_index.max()) + 1 if self.edge_index.numel() else 0

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    @property
    def num_classes(self) -> int:
        return self.y.shape[1] if self.y.dim() == 2 else int(self.y.max()) + 1

    def __repr__(self) -> str:
        shapes = (f"{n}: {list(x.shape)}" for n, x in self._arrays.items())
        return f"GraphArrays({', '.join(shapes)})"


def load(place: str | Path, root: str = "data") -> GraphArrays:
    """The arrays of a graph.

    Args:
        place: a folder of `.npy` files, a `.npz` file, a class of `torch_geometric.datasets` with
            its name (`Planetoid:Cora`), or `default`, a generated citation graph. A data set gives
            `x` (nodes x features, float32), `edge_index` (2 x edges, int64), `y` (nodes, int64) and
            the masks `train_mask`, `val_mask`, `test_mask` (nodes, bool).
        root: the folder that a data set is read from, and downloaded to.

    Raises:
        FileNotFoundError: a folder or file that is not there.
        ValueError: no arrays of numbers are there, or the data set is not known.
    """
    path = Path(place).expanduser()
    if path.is_dir():
        return _arrays({f.stem: f for f in sorted(path.glob("*.npy"))}, path)
    if path.suffix == ".npz":
        return _archive(path)
    if path.suffix or "/" in str(place):
        raise FileNotFoundError(f"{place}: there is no such folder, and it is no .npz file")
    return _data_set(str(place), root)


def _archive(path: Path) -> GraphArrays:
    with _read(path) as archive:
        return _tensors({name: archive[name] for name in archive.files}, path)


def _arrays(files: Mapping[str, Path], path: Path) -> GraphArrays:
    return _tensors({name: _read(f) for name, f in files.items()}, path)


def _read(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"{path} is no file of NumPy's: {error}") from error


def _tensors(arrays: Mapping[str, Any], path: Path) -> GraphArrays:
    if not arrays:
        raise ValueError(f"{path} has no arrays")
    for name, x in arrays.items():
        if x.dtype.kind not in KINDS or x.dtype.hasobject:
            raise ValueError(f"{name} in {path} holds {x.dtype}, not numbers")
    return GraphArrays({n: torch.from_numpy(np.ascontiguousarray(x)) for n, x in arrays.items()})


def _data_set(name: str, root: str) -> GraphArrays:
    from ...tools.children import Refused
    from ...tools.train import load as load_task

    try:
        task = load_task(name, str(Path(root).expanduser()), 2708)
    except Refused as error:
        raise ValueError(str(error)) from error
    found = {"x": task.x, "edge_index": task.edge_index, "y": task.y}
    masks = {"train_mask": task.train, "val_mask": task.validation, "test_mask": task.test}
    return GraphArrays({n: torch.from_numpy(x) for n, x in (found | masks).items()})
