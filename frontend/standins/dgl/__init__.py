"""DGL 2.1's graphs in plain torch: code that is written for DGL runs here without it."""

from . import function, ops
from .base import ALL, EID, ETYPE, NID, NTYPE, DGLError, DGLWarning
from .create import block_to_graph, create_block, graph, heterograph, rand_bipartite, rand_graph
from .graph import DGLGraph
