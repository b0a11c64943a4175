"""`SparseMatrix`: entries with a value, or a vector of values, each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .arithmetic import Arithmetic
from .pattern import Compressed, Pattern, Shape
from .products import Products
from .reductions import Reductions
from .selections import Selections


class SparseMatrix(Arithmetic, Products, Reductions, Selections):
    """A sparse matrix with DGL's methods, in plain torch: values can be differentiated.

    Matrices are made by `spmatrix`, `from_coo`, `diag` and their kin.
    """

    def __init__(self, pattern: Pattern, val: Tensor):
        self._own_pattern, self._own_val = pattern, val

    @property
    def _pattern(self) -> Pattern:
        return self._own_pattern

    @property
    def val(self) -> Tensor:
        """The values, `(nnz,)` or `(nnz, D)`."""
        return self._own_val

    @property
    def shape(self) -> Shape:
        """How many rows and columns there are."""
        return self._own_pattern.shape

    @property
    def nnz(self) -> int:
        """How many entries there are."""
        return self.val.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.val.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.val.device

    @property
    def row(self) -> Tensor:
        """The row of each entry, `int64` of `(nnz,)`."""
        return self._pattern.row

    @property
    def col(self) -> Tensor:
        """The column of each entry, `int64` of `(nnz,)`."""
        return self._pattern.col

    def coo(self) -> tuple[Tensor, Tensor]:
        """The row and the column of each entry."""
        return self.row, self.col

    def indices(self) -> Tensor:
        """The rows and columns of the entries, `(2, nnz)`."""
        return torch.stack(self.coo())

    def csr(self) -> Compressed:
        """Pointers of rows, columns, and which entry each is; None if they are in order."""
        return self._pattern.compressed()

    def csc(self) -> Compressed:
        """Pointers of columns, rows, and which entry each is; None if they are in order."""
        return self._pattern.transposed().compressed()

    def to_dense(self) -> Tensor:
        """A tensor of the matrix; of several entries at one place the last counts."""
        full = self.val.new_zeros((*self.shape, *self.val.shape[1:]))
        return full.index_put((self.row, self.col), self.val)

    def transpose(self) -> SparseMatrix:
        """The transpose, with the entries in the same order."""
        return SparseMatrix(self._pattern.transposed(), self.val)

    t = transpose

    @property
    def T(self) -> SparseMatrix:
        """The transpose."""
        return self.transpose()

    def _has_numbers(self) -> bool:
        """Whether each value is one number."""
        return self.val.dim() == 1

    def is_diag(self) -> bool:
        """Whether it was made as a diagonal matrix."""
        return self._pattern.diagonal

    def like(self, val: Tensor) -> SparseMatrix:
        """A matrix with other values at the same places."""
        if val.shape[0] != self.val.shape[0]:
            raise RuntimeError(
                "The first dimension of the old values and the new values must be the same: val "
                f"has {val.shape[0]}, the matrix {self.val.shape[0]}."
            )
        return SparseMatrix(self._pattern, val)

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> SparseMatrix:
        """The matrix on another device, or with values of another type."""
        device = self.device if device is None else torch.device(device)
        dtype = self.dtype if dtype is None else dtype
        if device == self.device and dtype == self.dtype:
            return self
        old = self._pattern
        if device != self.device:
            old = Pattern(old.row.to(device), old.col.to(device), old.shape, old.diagonal)
        return SparseMatrix(old, self.val.to(device=device, dtype=dtype))

    def cuda(self) -> SparseMatrix:
        """The matrix on a GPU."""
        return self.to("cuda")

    def cpu(self) -> SparseMatrix:
        """The matrix in main memory."""
        return self.to("cpu")

    def float(self) -> SparseMatrix:
        """Values of `float32`."""
        return self.to(dtype=torch.float32)

    def double(self) -> SparseMatrix:
        """Values of `float64`."""
        return self.to(dtype=torch.float64)

    def int(self) -> SparseMatrix:
        """Values of `int32`."""
        return self.to(dtype=torch.int32)

    def long(self) -> SparseMatrix:
        """Values of `int64`."""
        return self.to(dtype=torch.int64)

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """An operator of a tensor and a matrix: to a tracer the operators of two matrices, and of
        a matrix and a number, are such too."""
        name = function.__name__
        plain = getattr(operator, OPERATORS.get(name.strip("_"), ""), None)
        if plain is None or len(args) != 2 or kwargs:
            raise TypeError(f"torch's {name} of a sparse matrix of gnnc.dgl; use to_dense()")
        left, right = reversed(args) if name.startswith("__r") else args
        return _computed(plain, left, right)

    def __repr__(self) -> str:
        parts = [f"indices={self.indices()}", f"values={self.val}"]
        last = f"shape={tuple(self.shape)}, nnz={self.nnz}"
        if self.val.dim() > 1:
            last += f", val_size={tuple(self.val.shape[1:])}"
        parts = [_indented(part, part.index("=") + 1) for part in parts]
        return _indented("SparseMatrix(" + ",\n".join([*parts, last]) + ")", len("SparseMatrix("))


OPERATORS = {
    **dict.fromkeys(("add", "radd"), "add"),
    **dict.fromkeys(("sub", "rsub"), "sub"),
    **dict.fromkeys(("mul", "rmul"), "mul"),
    **dict.fromkeys(("truediv", "true_divide", "div", "rtruediv", "rdiv"), "truediv"),
    **dict.fromkeys(("pow", "rpow"), "pow"),
    **dict.fromkeys(("matmul", "mm", "rmatmul"), "matmul"),
}
"""What functions of torch are as operators."""


def _computed(operation: Callable[..., Any], left: Any, right: Any) -> Any:
    """An operator, as Python chooses the method, without the tensor's own."""
    name = f"__{operation.__name__}__"
    if isinstance(left, SparseMatrix):
        result = getattr(left, name)(right)
    elif operation is operator.mul:
        result = right * left
    else:
        result = NotImplemented
    if result is NotImplemented:
        kinds = type(left).__name__, type(right).__name__
        raise TypeError(f"unsupported operand types for {operation.__name__}: {kinds}")
    return result


def _indented(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)
