"""Features: a plain dict of tensors for each type, and what is read and written of its rows.

A dict is what a tracer follows best; the checks of sizes are where values enter (`checked`).
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import torch
from torch import Tensor

from .base import DGLError
from .degrees import plain
from .init import Initializers
from .topology import same_device

Frame = dict[str, Tensor]


class Rows(Mapping[str, Tensor]):
    """Some rows of a frame, each feature gathered when it is read; `rows` of None is all."""

    def __init__(self, frame: Mapping[str, Tensor], rows: Tensor | None = None):
        self._frame, self._rows = frame, rows

    def __getitem__(self, key: str) -> Tensor:
        value = self._frame[key]
        return value if self._rows is None else value.index_select(0, self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame)

    def __len__(self) -> int:
        return len(self._frame)

    def get(self, key: str, default: object = None) -> object:
        """The feature, or `default` where there is none."""
        return self[key] if key in self._frame else default


def _at_rows(feature: Tensor, rows: Tensor) -> Tensor:
    return feature.index_select(0, rows)


def moved(frame: Frame, device: torch.device, **kwargs: Any) -> Frame:
    """The features on a device."""
    if isinstance(frame, Inherited):
        return frame.moved(device, **kwargs)
    return {key: value.to(device, **kwargs) for key, value in frame.items()}


class Inherited(dict[str, Tensor]):
    """A frame of some rows of another one: features of its own, and the other's, each of which is
    gathered when it is first read, and then put on a device if one is given. What is set in the
    other one later is not seen."""

    def __init__(
        self,
        frame: Mapping[str, Tensor],
        rows: Tensor,
        own: Mapping[str, Tensor],
        device: torch.device | None = None,
    ):
        super().__init__(own)
        self._others = {key: frame[key] for key in frame}
        self._rows, self._device = rows, device

    def fetch(self, key: str, gather: Callable[[Tensor, Tensor], Tensor] = _at_rows) -> Tensor:
        """A feature, gathered now if it was not: by a function of the other frame's and the rows.

        Raises `KeyError` if there is none.
        """
        if super().__contains__(key):
            return self[key]
        value = gather(self._others[key], self._rows).to(self._device)
        if not torch.compiler.is_dynamo_compiling():  # it would be one more result of the program
            self[key] = value
        return value

    def __missing__(self, key: str) -> Tensor:
        return self.fetch(key)

    def moved(self, device: torch.device, **kwargs: Any) -> Inherited:
        """The frame on a device; what was not gathered is put there when it is."""
        own = {key: self[key].to(device, **kwargs) for key in super().__iter__()}
        return Inherited(self._others, self._rows, own, device)

    def __delitem__(self, key: str) -> None:
        if self._others.pop(key, None) is None or super().__contains__(key):
            super().__delitem__(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._others

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*super().__iter__(), *self._others]))

    def __len__(self) -> int:
        return len(dict.fromkeys([*super().__iter__(), *self._others]))

    def keys(self) -> Any:
        return KeysView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def items(self) -> Any:
        return ItemsView(self)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def copy(self) -> Inherited:
        """A frame of the same rows; what was not gathered is still not."""
        own = {key: self[key] for key in super().__iter__()}
        return Inherited(self._others, self._rows, own, self._device)


def checked(key: str, value: object, rows: int, device: torch.device, what: str) -> Tensor:
    """A feature that fits its rows: a tensor on the graph's device, one entry a row.

    Raises `DGLError` where sizes or devices differ, `TypeError` for what is no tensor.
    """
    value = plain(value)
    if not isinstance(value, Tensor):
        raise TypeError(f"{what} feature {key!r} must be a tensor, got {type(value).__name__}")
    if value.dim() == 0 or value.shape[0] != rows:
        raise DGLError(
            f"Expect number of features to match number of {what}s. Got {tuple(value.shape)} for "
            f"{what} feature {key!r} of {rows} {what}s."
        )
    if not same_device(value.device, device):
        raise DGLError(
            f'Cannot assign {what} feature "{key}" on device {value.device} to a graph on device '
            f"{device}. Call DGLGraph.to() to copy the graph to the same device."
        )
    return value


def write_rows(
    frame: Frame, key: str, rows: Tensor, value: Tensor, total: int, initializers: Initializers
) -> None:
    """Puts rows of a feature in place; of a new feature the `initializers` make all `total`.

    The tensor that was there is not edited: others, and autograd, may hold it.
    """
    if key in frame:
        column = frame[key]
    else:
        column = initializers.rows(key, value, 0, total)
    frame[key] = column.index_copy(0, rows, value)
