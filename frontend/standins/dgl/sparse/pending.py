"""Sums and products of sparse matrices while a call is traced: kept as what they are made of.

Where the entries of a sum or product are depends on data. But most of what is done with one is
linear: it is multiplied with dense matrices, diagonals and others, scaled, transposed and summed.
All of that is done with the parts, and no entry of the whole is made: `(A @ B) @ X` is
`A @ (B @ X)`. Whoever asks for entries gets those that DGL has.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from .arithmetic import together
from .matrix import SparseMatrix
from .pattern import Pattern, Shape
from .products import expanded

Factors = tuple[SparseMatrix, ...]


def added(left: SparseMatrix, right: SparseMatrix) -> SparseMatrix:
    """The sum of two matrices."""
    if torch.compiler.is_dynamo_compiling():
        return Pending([*_terms(left), *_terms(right)], left.shape)
    return together(left, right)


def product(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """The product of two matrices."""
    if torch.compiler.is_dynamo_compiling():
        terms = [(*left, *right) for left in _terms(A) for right in _terms(B)]
        return Pending(terms, (A.shape[0], B.shape[1]))
    return expanded(A, B)


def _terms(matrix: SparseMatrix) -> list[Factors]:
    return matrix._parts if isinstance(matrix, Pending) else [(matrix,)]


class Pending(SparseMatrix):
    """A sum of products of matrices, none of which is a `Pending`."""

    def __init__(self, terms: list[Factors], shape: Shape):
        self._parts, self._size = terms, shape
        self._made: SparseMatrix | None = None

    def _settled(self) -> SparseMatrix:
        if self._made is None:
            products = [functools.reduce(expanded, term) for term in self._parts]
            self._made = functools.reduce(together, products)
        return self._made

    @property
    def _pattern(self) -> Pattern:
        return self._settled()._pattern

    @property
    def val(self) -> Tensor:
        """The values, `(nnz,)` or `(nnz, D)`."""
        return self._settled().val

    @property
    def shape(self) -> Shape:
        """How many rows and columns there are."""
        return self._size

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self._parts[0][0].dtype

    def _has_numbers(self) -> bool:
        return all(factor._has_numbers() for term in self._parts for factor in term)

    def is_diag(self) -> bool:
        """Whether it was made as a diagonal matrix."""
        return False

    def times(self, X: Tensor) -> Tensor:
        """The product with a dense matrix."""
        total = None
        for term in self._parts:
            y = X
            for factor in reversed(term):
                y = factor.times(y)
            total = y if total is None else total + y
        assert total is not None
        return total

    def transpose(self) -> SparseMatrix:
        """The transpose."""
        turned = [tuple([f.transpose() for f in reversed(term)]) for term in self._parts]
        return Pending(turned, self._size[::-1])

    t = transpose

    def scaled(self, number: Any) -> SparseMatrix:
        """The matrix times a number."""
        terms = [(term[0].scaled(number), *term[1:]) for term in self._parts]
        return Pending(terms, self._size)

    def reduce(self, dim: int | None = None, rtype: str = "sum") -> Tensor:
        """Sums by way of the parts, all else of the entries."""
        if rtype != "sum" or dim not in (0, 1) or self._parts[0][0].val.dim() > 1:
            return super().reduce(dim, rtype)
        matrix = self.transpose() if dim == 0 else self
        like = self._parts[0][0].val
        return matrix.times(like.new_ones(matrix.shape[1]))

    def _left_scaled(self, diagonal: Tensor) -> SparseMatrix:
        terms = [(term[0]._left_scaled(diagonal), *term[1:]) for term in self._parts]
        return Pending(terms, self._size)

    def _right_scaled(self, diagonal: Tensor) -> SparseMatrix:
        terms = [(*term[:-1], term[-1]._right_scaled(diagonal)) for term in self._parts]
        return Pending(terms, self._size)
