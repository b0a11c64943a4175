"""The layers."""

from .agnnconv import AGNNConv
from .appnpconv import APPNPConv
from .atomicconv import AtomicConv
from .cfconv import CFConv
from .chebconv import ChebConv
from .dense import DenseChebConv, DenseGraphConv, DenseSAGEConv
from .dotgatconv import DotGatConv
from .edgeconv import EdgeConv
from .egatconv import EGATConv
from .egnnconv import EGNNConv
from .gatconv import EdgeGATConv, GATConv
from .gatedgcnconv import GatedGCNConv
from .gatedgraphconv import GatedGraphConv
from .gatv2conv import GATv2Conv
from .gcn2conv import GCN2Conv
from .ginconv import GINConv, GINEConv
from .gmmconv import GMMConv
from .graphconv import EdgeWeightNorm, GraphConv
from .hgtconv import HGTConv
from .nnconv import NNConv
from .pnaconv import PNAConv
from .relgraphconv import RelGraphConv
from .sageconv import SAGEConv
from .sgconv import SGConv
from .tagconv import TAGConv

__all__ = [
    "AGNNConv",
    "APPNPConv",
    "AtomicConv",
    "CFConv",
    "ChebConv",
    "DenseChebConv",
    "DenseGraphConv",
    "DenseSAGEConv",
    "DotGatConv",
    "EGATConv",
    "EGNNConv",
    "EdgeConv",
    "EdgeGATConv",
    "EdgeWeightNorm",
    "GATConv",
    "GATv2Conv",
    "GCN2Conv",
    "GINConv",
    "GINEConv",
    "GMMConv",
    "GatedGCNConv",
    "GatedGraphConv",
    "GraphConv",
    "HGTConv",
    "NNConv",
    "PNAConv",
    "RelGraphConv",
    "SAGEConv",
    "SGConv",
    "TAGConv",
]
