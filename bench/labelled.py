"""Published graphs without types, with features and a class of every node, in one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..frontend.tools.datasets import Floats, Ints


@dataclass(frozen=True)
class Labelled:
    """`x` (n x f, mostly zeros), `edge_index` (2 x e) and the classes `y` (n)."""

    x: Floats
    edge_index: Ints
    y: Ints

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1

    def in_random_order(self, seed: int = 0) -> Labelled:
        """The same with the nodes numbered at random, as no order may be counted on."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        number = np.argsort(order)
        return Labelled(self.x[order], number[self.edge_index], self.y[order])

    def save(self, path: Path) -> None:
        """Writes everything to one `.npz` file, of `x` what is not 0."""
        row, col = np.nonzero(self.x)
        x = np.stack([row, col])
        shape = np.array(self.x.shape)
        values: NDArray[np.float32] = self.x[row, col]
        np.savez(path, shape=shape, x=x, values=values, edge_index=self.edge_index, y=self.y)

    @staticmethod
    def load(path: Path) -> Labelled:
        """What `save` wrote."""
        with np.load(path) as stored:
            x = np.zeros(tuple(stored["shape"]), np.float32)
            row, col = stored["x"]
            x[row, col] = stored["values"]
            return Labelled(x, stored["edge_index"], stored["y"])
