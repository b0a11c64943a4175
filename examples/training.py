"""A whole training as a program: run it, or build it without Python.

python examples/training.py
gnnc build examples/training.py -o out && make -C out run
"""

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCN

import gnnc


@gnnc.training
def citation(place="default", epochs=100):
    data = gnnc.load(place)
    model = GCN(data.num_features, 16, 2, data.num_classes, dropout=0.5)  # Xavier's weights
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    citation()
