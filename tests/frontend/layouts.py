"""The sparse layouts that compile, for the tests of matrices."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from torch import Tensor

LAYOUTS = {
    "coo": Tensor.to_sparse_coo,
    "csr": Tensor.to_sparse_csr,
    "csc": Tensor.to_sparse_csc,
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """For modules that import it: torch calls its sparse layouts a beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
