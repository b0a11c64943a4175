"""PyG's EdgeIndex and Index: to Dynamo they are the plain tensors that they hold, which it would
else compile again for each size. What only they know (`get_csr()`, `matmul`) they are asked.
"""

import operator
import sys

import torch
from torch_geometric.edge_index import EdgeIndex
from torch_geometric.index import Index

from ...capture.exchanged import exchange

# what is the same for the tensor that is held
_ALIKE = {"dtype", "tolist", "numpy", "is_shared", "__repr__"}
_PRODUCTS = frozenset({"matmul", "mm", "__matmul__", operator.matmul, torch.matmul, torch.mm})


def install() -> None:
    """Has EdgeIndex and Index exchanged for the tensors that they hold."""
    for of in (EdgeIndex, Index):
        names = {name for name in vars(of) if not name.startswith("__")}

        def inner(file: str, home: str | None = sys.modules[of.__module__].__file__) -> bool:
            return file == home

        exchange(
            of,
            "_gnnc_tensor",
            lambda x: True,
            of.as_tensor,
            inner,
            own=frozenset(names - _ALIKE),
            own_functions=_PRODUCTS,
        )
