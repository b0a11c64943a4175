"""Filtered ranks of link prediction: where the true entity stands among all entities.

The filtered setting is that of Bordes et al. (NeurIPS 2013): entities that are other true answers
to the same question do not count.
"""

from __future__ import annotations

import torch
from torch import Tensor

BATCH = 1024
"""Questions answered at a time: their scores are BATCH x entities."""


class Known:
    """True answers by question: `answers[i]` is one to the question `keys[i]` (int64, e each)."""

    def __init__(self, keys: Tensor, answers: Tensor):
        self._keys, order = keys.sort(stable=True)
        self._answers = answers[order]

    def of(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """All pairs (i, answer) where `answer` is true for the question `keys[i]`."""
        begins = torch.searchsorted(self._keys, keys)
        counts = torch.searchsorted(self._keys, keys, right=True) - begins
        rows = torch.arange(len(keys)).repeat_interleave(counts)
        within = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[rows]
        return rows, self._answers[begins[rows] + within]


def reciprocal_ranks(
    queries: Tensor, entities: Tensor, answers: Tensor, keys: Tensor, known: Known
) -> Tensor:
    """1 / rank of `answers[i]` (q) by `queries[i] . entities[j]` (q x d and n x d) among entities
    that are no other known answer to `keys[i]`.

    Entities with the same score share their ranks: each has the mean of them.
    """
    found: list[Tensor] = []
    for query, answer, key in zip(
        queries.split(BATCH), answers.split(BATCH), keys.split(BATCH), strict=True
    ):
        scores = query @ entities.T
        own = scores.gather(1, answer[:, None])
        scores[known.of(key)] = -torch.inf
        scores.scatter_(1, answer[:, None], -torch.inf)
        above, equal = (scores > own).sum(1), (scores == own).sum(1)
        found.append(1 / (1 + above + equal / 2))
    return torch.cat(found)
