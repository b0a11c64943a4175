"""A sparse matrix as the numbers of its entries."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch._dynamo.variables.tensor import TensorVariable
from torch._guards import TracingContext

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
"""The layouts of torch that can be compiled: the others hold blocks."""


_Traits = tuple[torch.layout, bool, type | None]
"""What a program is compiled for: the layout, the order, and the class of SciPy."""


class Matrix(Tensor):
    """A sparse matrix of `n` rows and `m` columns with `nnz` entries.

    Attributes:
        row: the row of each entry, i64 of shape (nnz,).
        col: the column of each entry, i64 of shape (nnz,).
        value: the entries, of shape (nnz,).
        like: the layout that the user's matrix has.
        ordered: the entries are in the order that this layout has; functions that show it are left
            to torch otherwise.
        scipy: the class of a matrix of SciPy that the user has given.
        origin: gives the user's matrix, where this is no stand-in of a trace. Functions that are
            called beside a trace, behind a graph break, are called with it.
    """

    row: Tensor
    col: Tensor
    value: Tensor
    like: torch.layout
    ordered: bool
    scipy: type | None
    origin: Callable[[], Tensor | None] | None

    @staticmethod
    def __new__(
        cls,
        row: Tensor,
        col: Tensor,
        value: Tensor,
        shape: Any,
        like: torch.layout,
        ordered: bool = True,
        scipy: type | None = None,
        *,
        strides: Any = None,
        origin: Callable[[], Tensor | None] | None = None,
    ) -> Matrix:
        self = Tensor._make_wrapper_subclass(
            cls, shape, strides=strides, dtype=value.dtype, requires_grad=value.requires_grad
        )
        self.row, self.col, self.value = row, col, value
        self.like, self.ordered, self.scipy, self.origin = like, ordered, scipy, origin
        return self

    def __repr__(self) -> str:
        return f"Matrix(shape={tuple(self.shape)}, entries={self.row.size(0)}, like={self.like})"

    # what user code asks to tell layouts apart, of which the stand-in's own answer is another
    is_sparse_csr = property(lambda self: self.like is torch.sparse_csr)

    def __tensor_flatten__(self) -> tuple[list[str], _Traits]:
        return ["row", "col", "value"], (self.like, self.ordered, self.scipy)

    @staticmethod
    def __tensor_unflatten__(
        inner: Mapping[str, Tensor], kept: _Traits, size: Any, stride: Any
    ) -> Matrix:
        parts = inner["row"], inner["col"], inner["value"]
        return Matrix(*parts, size, *kept, strides=stride)

    @classmethod
    @torch._dynamo.disable  # behind a graph break it runs, and is nothing to compile
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        from .operations import OPERATIONS

        if TracingContext.try_get() is None:
            args, kwargs = pytree.tree_map_only(Matrix, lambda x: x.origin(), (args, kwargs or {}))
            return func(*args, **kwargs)
        if func in OPERATIONS:
            return OPERATIONS[func](*args, **(kwargs or {}))
        out = super().__torch_function__(func, types, args, kwargs or {})
        tensors = any(isinstance(x, Tensor) for x in pytree.tree_leaves(out))
        if tensors and getattr(func, "__name__", "") != "__get__":
            raise NotImplementedError(unknown(getattr(func, "__name__", func)))
        return out

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            x = args[0]
            return Matrix(x.row, x.col, x.value.detach(), x.shape, x.like, x.ordered, x.scipy)
        raise NotImplementedError(unknown(func))


def unknown(function: object) -> str:
    """Why a function of a sparse matrix is left to torch."""
    return (
        f"{function} of a sparse matrix: compiled are its products with dense tensors, its "
        "transpose and its entries"
    )


def tell_layouts() -> None:
    """Lets Dynamo answer for a matrix what the user's tensor would: it takes layouts from the
    stand-in, which has the numbers of its entries as dense tensors."""
    plain = TensorVariable.specialize
    if getattr(plain, "of_matrices", False):
        return

    def specialize(value: Tensor) -> dict[str, Any]:
        properties = plain(value)
        if isinstance(value, Matrix):
            properties |= {"layout": value.like, "is_sparse": value.like is torch.sparse_coo}
        return properties

    specialize.of_matrices = True  # type: ignore[attr-defined]
    TensorVariable.specialize = staticmethod(specialize)  # type: ignore[method-assign]


@dataclass
class _Kept:
    """The numbers of the rows and columns of a matrix, while nobody writes to its own. Numbers of
    objects come again: `of` tells whether it is still the same matrix. `matrix` is what it was
    taken for last, where it was kept."""

    of: weakref.ref[Tensor]
    versions: tuple[int, ...]
    row: Tensor
    col: Tensor
    matrix: Matrix | None = None


_kept: dict[int, _Kept] = {}


def is_sparse(x: object) -> bool:
    """Whether this is a sparse tensor, in any layout."""
    return isinstance(x, Tensor) and x.layout not in (torch.strided, torch.jagged)


def of_torch(tree: Any) -> Any:
    """`tree` with every matrix of SciPy as one of torch in CSR."""
    issparse = sys.modules["scipy.sparse"].issparse
    return pytree.tree_map(lambda x: _from_scipy(x) if issparse(x) else x, tree)


def holds_scipy(tree: Any) -> bool:
    """Whether there is a matrix of SciPy in plain containers."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and any(map(scipy.issparse, _leaves(tree)))


def _leaves(x: Any) -> Iterator[Any]:
    """What plain containers hold (pytree takes five times as long, at every call)."""
    if isinstance(x, dict):
        x = x.values()
    elif not isinstance(x, tuple | list):
        yield x
        return
    for y in x:
        yield from _leaves(y)


def why_not(x: Tensor) -> str | None:
    """Why a sparse tensor cannot be compiled, or None."""
    if x.layout not in LAYOUTS:
        return f"a sparse matrix in {x.layout}: gnnc compiles COO, CSR and CSC"
    if x.dim() != 2 or x.dense_dim() > 0:
        return "a sparse tensor that is no matrix of numbers"
    if x.requires_grad and x.is_leaf:
        return (
            "a sparse matrix that wants a gradient itself: make it of a tensor of values that does"
        )
    return None


_SCIPY = "_gnnc_scipy"
"""The attribute with the class of the matrix that a tensor was made of."""


def _from_scipy(x: Any) -> Tensor:
    """A matrix of SciPy as one of torch in CSR. It is made at each call, and with it what depends
    on the structure: SciPy does not tell whether a matrix was written to."""
    kind, x = type(x), x.tocsr()
    with warnings.catch_warnings():
        # torch calls the layout a beta, and warns of arrays that are not to be written to
        warnings.simplefilter("ignore", UserWarning)
        pointer, columns, values = map(torch.from_numpy, (x.indptr, x.indices, x.data))
        out = torch.sparse_csr_tensor(pointer.long(), columns.long(), values, x.shape)
    setattr(out, _SCIPY, kind)
    return out


def as_matrix(x: Tensor) -> Matrix:
    """A sparse matrix of torch in one of `LAYOUTS`; the numbers of rows and columns are made once
    for all calls with it, and anew where it was written to."""
    origin, ordered = x, has_order(x)
    if not ordered:
        x = x.coalesce()
    kept, values = _structure(x), x.values()
    # a view of a sparse tensor is nothing that Dynamo takes: what shares its memory is
    values = values.clone() if values.requires_grad else values.detach()
    parts = kept.row, kept.col, values
    kind = getattr(origin, _SCIPY, None)
    return Matrix(*parts, x.shape, x.layout, ordered, kind, origin=lambda: origin)


def kept_matrix(x: Tensor) -> Matrix:
    """The same `Matrix` each time, as long as the structure stays and the entries lie where they
    lie: of one with an order and no gradient, as which it shares the memory of the entries. It does
    not keep the user's alive."""
    kept, values = _structure(x), x.values().detach()
    found = kept.matrix
    if found is None or found.value.data_ptr() != values.data_ptr():
        parts = kept.row, kept.col, values
        found = kept.matrix = Matrix(*parts, x.shape, x.layout, origin=kept.of)
    return found


def has_order(x: Tensor) -> bool:
    """Whether a matrix has its entries in the order of its layout, and none twice."""
    return x.layout is not torch.sparse_coo or x.is_coalesced()


def _structure(x: Tensor) -> _Kept:
    """The numbers of rows and columns of a matrix in order."""
    if x.layout is torch.sparse_coo:
        parts = [x.indices()]
    elif x.layout is torch.sparse_csr:
        parts = [x.crow_indices(), x.col_indices()]
    else:
        parts = [x.ccol_indices(), x.row_indices()]
    versions = tuple(p._version for p in parts)
    kept = _kept.get(id(x))
    if kept is None or kept.of() is not x or kept.versions != versions:
        if kept is None or kept.of() is not x:
            weakref.finalize(x, _kept.pop, id(x), None)
        kept = _kept[id(x)] = _Kept(weakref.ref(x), versions, *_ends(x.layout, parts))
    return kept


@torch.inference_mode(False)  # what is kept is for calls with gradients as well
def _ends(layout: torch.layout, parts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The row and the column of each entry, in memory of their own."""
    if layout is torch.sparse_coo:
        return parts[0][0].clone(), parts[0][1].clone()
    pointer, members = parts
    groups = torch.repeat_interleave(pointer.diff().long())
    members = members.to(torch.int64, copy=True)
    return (groups, members) if layout is torch.sparse_csr else (members, groups)
