"""DGL 2.1's graphs in plain torch: code that is written for DGL runs here without it.

`install` makes `import dgl` find this package. What DGL has and this package does not raises an
error that names it. It answers as DGL does, but for these:

- ids that are negative or out of range are errors, also where DGL takes them;
- equal maxima share the gradient, where DGL gives it to one of them;
- the maximum or minimum of no messages has no gradient, where DGL raises or gives it to node 0;
- `update_all` of all edge types reduces messages also where the first type has no edges, for which
  DGL gives zeros; `mean_edges` of a graph without edges is zero, there NaN;
- integers and `float16` are messages as others are; on a CPU DGL has no kernels for them;
- `pull` and `push` count a node that is given twice once;
- `formats` and `create_formats_` do nothing;
- random graphs are others for the same seed.
"""

import importlib
from typing import Any

from . import function, init, mpops, nn, ops, sparse, transforms, utils
from .absent import FUNCTIONS, MODULES, absent
from .base import ALL, EID, ETYPE, NID, NTYPE, DGLError, DGLWarning
from .batch import batch, merge, slice_batch, unbatch
from .blocks import to_block
from .convert import (
    bipartite_from_networkx,
    bipartite_from_scipy,
    from_networkx,
    from_scipy,
    to_networkx,
)
from .create import block_to_graph, create_block, graph, heterograph, rand_bipartite, rand_graph
from .graph import DGLGraph
from .graph import DGLGraph as DGLHeteroGraph
from .homogeneous import to_heterogeneous, to_homogeneous
from .homophily import adjusted_homophily, edge_homophily, linkx_homophily, node_homophily
from .install import install
from .interchange import from_dgl, from_pyg, to_dgl, to_pyg
from .matrices import to_scipy
from .mpops import copy_u, copy_v, u_add_v, u_div_v, u_dot_v, u_mul_v, u_sub_v
from .random import seed
from .readout import (
    broadcast_edges,
    broadcast_nodes,
    max_edges,
    max_nodes,
    mean_edges,
    mean_nodes,
    readout_edges,
    readout_nodes,
    softmax_edges,
    softmax_nodes,
    sum_edges,
    sum_nodes,
    topk_edges,
    topk_nodes,
)
from .subgraphs import (
    edge_subgraph,
    edge_type_subgraph,
    in_subgraph,
    khop_in_subgraph,
    khop_out_subgraph,
    node_subgraph,
    node_type_subgraph,
    out_subgraph,
)
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms
from .traversal import (
    bfs_edges_generator,
    bfs_nodes_generator,
    prop_edges,
    prop_nodes,
    prop_nodes_bfs,
    prop_nodes_topo,
    topological_nodes_generator,
)
from .utils import apply_each

__version__ = "2.1.0"
backend_name = "pytorch"

__all__ = [
    "ALL",
    "DGLError",
    "DGLGraph",
    "DGLHeteroGraph",
    "DGLWarning",
    "EID",
    "ETYPE",
    "NID",
    "NTYPE",
    "__version__",
    "adjusted_homophily",
    "apply_each",
    "backend_name",
    "batch",
    "bfs_edges_generator",
    "bfs_nodes_generator",
    "bipartite_from_networkx",
    "bipartite_from_scipy",
    "block_to_graph",
    "broadcast_edges",
    "broadcast_nodes",
    "copy_u",
    "copy_v",
    "create_block",
    "edge_homophily",
    "edge_subgraph",
    "edge_type_subgraph",
    "from_dgl",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "function",
    "graph",
    "heterograph",
    "in_subgraph",
    "init",
    "install",
    "khop_in_subgraph",
    "khop_out_subgraph",
    "linkx_homophily",
    "max_edges",
    "max_nodes",
    "mean_edges",
    "mean_nodes",
    "merge",
    "mpops",
    "nn",
    "node_homophily",
    "node_subgraph",
    "node_type_subgraph",
    "ops",
    "out_subgraph",
    "prop_edges",
    "prop_nodes",
    "prop_nodes_bfs",
    "prop_nodes_topo",
    "rand_bipartite",
    "rand_graph",
    "readout_edges",
    "readout_nodes",
    "seed",
    "slice_batch",
    "softmax_edges",
    "softmax_nodes",
    "sparse",
    "sum_edges",
    "sum_nodes",
    "to_block",
    "to_dgl",
    "to_heterogeneous",
    "to_homogeneous",
    "to_networkx",
    "to_pyg",
    "to_scipy",
    "topk_edges",
    "topk_nodes",
    "topological_nodes_generator",
    "transforms",
    "u_add_v",
    "u_div_v",
    "u_dot_v",
    "u_mul_v",
    "u_sub_v",
    "unbatch",
    "utils",
    *_transforms,
]


_PREFETCHING = frozenset(f"set_{side}_lazy_features" for side in ("node", "edge", "src", "dst"))


def __getattr__(name: str) -> Any:
    """`dataloading`, which needs the samplers, is imported when it is asked for. A function of DGL
    that is not here raises when it is called, a module when asked for."""
    if name == "dataloading":
        return importlib.import_module(f"{__name__}.dataloading")
    if name in _PREFETCHING:
        return getattr(importlib.import_module(f"{__name__}.dataloading.prefetching"), name)
    if name in FUNCTIONS:
        return absent(name)
    more = ", which is out of its scope" if name in MODULES else ""
    raise AttributeError(f"module 'dgl' as gnnc.dgl has no attribute {name!r}{more}")
