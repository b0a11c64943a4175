"""Functions that users write: gather and scatter, attention, loops over relations, edits, masks,
pooling, and code on dense matrices. All take features and indices first."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.utils import scatter, softmax


def sum_at(messages: Tensor, index: Tensor, x: Tensor, reduce: str = "sum") -> Tensor:
    return scatter(messages, index, 0, dim_size=x.size(0), reduce=reduce)


def attention(x, edge_index, w):
    row, col = edge_index
    e = (x[row] * x[col]).sum(-1)
    a = softmax(e, col, num_nodes=x.size(0))
    return sum_at(a.unsqueeze(-1) * (x[row] @ w), col, x)


def no_dim_size(x, edge_index, w):
    row, col = edge_index
    return scatter(x[row] @ w, col, dim=0, reduce="mean")


def index_add(x, edge_index, w):
    row, col = edge_index
    out = torch.zeros(x.size(0), w.size(1), dtype=x.dtype)
    out.index_add_(0, col, x[row] @ w)
    return out


def relation_loop(x, edge_index, edge_type, w):
    out = torch.zeros(x.size(0), w.size(2))
    for r in range(w.size(0)):
        src, dst = edge_index[:, edge_type == r]
        out = out.index_add(0, dst, x[src] @ w[r])
    return out


def relation_bmm(x, edge_index, edge_type, w):
    messages = torch.bmm(x[edge_index[0]].unsqueeze(1), w[edge_type]).squeeze(1)
    return sum_at(messages, edge_index[1], x)


def flipped(x, e, w):
    row, col = e.flip(0).unbind(0)
    return sum_at(x[row] @ w, col, x)


def restacked(x, e, w):
    e = torch.stack([e[1], e[0]], 0)
    return sum_at(x[e[0]] @ w, e[1], x, "max")


def undirected(x, e, w):
    e = torch.cat([e, e.flip(0)], 1)
    return sum_at(x[e[0]] @ w, e[1], x, "mean")


def masked_edges(x, e, w):
    keep = (e[0] != e[1]) & (x[e[0], 0] > 0)
    e = e[:, keep]
    a = (x[e[0]] * x[e[1]]).sum(-1, keepdim=True)
    return sum_at(a * x[e[0]], e[1], x) @ w


def link_scores(x, e, w):
    h = x @ w
    return (h[e[0]] * h[e[1]]).sum(-1).sigmoid()


def pooled(x, batch, w):
    h = (x @ w).relu()
    return torch.cat([global_mean_pool(h, batch, 4), global_max_pool(h, batch, 4)], 1)


def pooled_by_max(x, batch, w):
    return global_add_pool(x @ w, batch)


def centred(x, e, w):
    h = F.normalize(x - x.sum(0) / x.size(0), dim=-1)
    return sum_at(h[e[0]], e[1], x) @ w


def embedded(x, kinds, w):
    return x @ w + F.embedding(kinds, w)


def dense_attention(x, e, w):
    return (x @ x.t()).softmax(-1) @ w[:1].expand(x.size(0), -1)


def sorted_by_end(x, e, w):
    e = e[:, e[1].argsort(stable=True)]
    return sum_at(x[e[0]] @ w, e[1], x)


def masked_nodes(x, e, w):
    h = sum_at(x[e[0]] @ w, e[1], x)
    return F.log_softmax(h[x[:, 0] > 0], -1)


def edge_features_only(x, e, edge_attr):
    h = edge_attr.relu().sum(-1, keepdim=True)
    return sum_at(h * x[e[0]], e[1], x)


def edits(x, e, w):
    h = x @ w
    h += 1
    h[:, 0] = 0
    h.mul_(2)
    return sum_at(h[e[0]], e[1], x)


def row_numbers(x, e, w):
    h = sum_at(x[e[0]] @ w, e[1], x)
    return h + torch.arange(x.size(0), dtype=x.dtype).view(-1, 1) / len(x)


def top_rows(x, e, w):
    h = x @ w
    s, i = h[:, 0].topk(5)
    return h[i] * s.view(-1, 1)


def edit_of_a_view(x, e, w):
    h = x @ w
    v = h.view(-1, 2, 4)
    v.mul_(2)
    return sum_at(h[e[0]], e[1], x)


def two_sizes_meet(x, e, w):
    h = scatter(x[e[0]] @ w, e[1], 0, reduce="sum")
    return h + x[: h.size(0)] @ w


def rounded(x, e, w):
    k = (x[:, 0] * 3).long().float()
    return sum_at(k[e[0]], e[1], x)


def same_mask_twice(x, e, w):
    a, b = e[:, e[0] < e[1]], e[:, e[0] < e[1]]
    return sum_at(x[a[0]] * x[b[1]], b[1], x) @ w


def whole_graph(x, e, w):
    return x + x.mean(0, keepdim=True) * x.max() + x.var(0)


def gram(x, e, w):
    return x @ (x.t() @ x)


def softmax_over_nodes(x, e, w):
    return (x @ w).softmax(0)


def joined(x, e, w):
    """One tensor joined alone, two with no rows between them, and columns from the end."""
    h = torch.cat([torch.cat([x]) @ w, x.new_zeros(0, 8), x])
    return sum_at(h[e[0]].narrow(1, -3, 2), e[1], x)


def taken_apart(x, e, w):
    """What is joined for one product, and split again."""
    both = torch.cat([x[e[0]], x]) @ w
    messages, own = both.split([e.size(1), x.size(0)])
    again = both.narrow(0, e.size(1), x.size(0)) + x.split(x.size(0))[0]
    return sum_at(messages, e[1], x) * own + again.relu()


def halves(x, e, w):
    a, b = (x @ w).chunk(2, -1)
    return sum_at((a * b)[e[0]], e[1], x, "min")


# here, because pytest rewrites the assertions of its own modules


def asserted(x, e, w):
    assert (w >= 0).all()
    return sum_at(x[e[0]], e[1], x) * w.sum()


def asserted_with_a_message(x, e, w):
    assert (w >= 0).all(), "weights are not negative"
    return sum_at(x[e[0]], e[1], x) * w.sum()
