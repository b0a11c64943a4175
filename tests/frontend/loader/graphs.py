"""Small graphs of PyG, with something of each kind."""

import torch
from torch_geometric.data import Data, HeteroData


def plain(nodes: int = 120, edges: int = 900) -> Data:
    random = torch.Generator().manual_seed(0)
    index = torch.randint(nodes, (2, edges), generator=random)
    return Data(
        x=torch.rand(nodes, 5, generator=random),
        y=torch.arange(nodes),
        edge_index=index,
        edge_attr=torch.arange(edges).view(-1, 1).expand(-1, 2).contiguous(),
        weight=torch.rand(edges, generator=random) + 0.1,
        train_mask=torch.arange(nodes) % 3 == 0,
        time=torch.randint(50, (nodes,), generator=random),
        edge_time=torch.randint(50, (edges,), generator=random),
        name="a graph",
    )


def typed() -> HeteroData:
    random = torch.Generator().manual_seed(1)
    data = HeteroData()
    data["paper"].x = torch.rand(80, 3, generator=random)
    data["paper"].time = torch.randint(50, (80,), generator=random)
    data["author"].x = torch.rand(40, 2, generator=random)
    data["venue"].num_nodes = 6
    sizes = {"paper": 80, "author": 40, "venue": 6}
    for kind in (
        ("paper", "cites", "paper"),
        ("author", "writes", "paper"),
        ("paper", "by", "author"),
        ("venue", "prints", "paper"),
    ):
        ends = [torch.randint(sizes[t], (300,), generator=random) for t in (kind[0], kind[2])]
        data[kind].edge_index = torch.stack(ends)
        data[kind].weight = torch.rand(300, generator=random) + 0.1
        data[kind].edge_attr = torch.arange(300)
    return data
