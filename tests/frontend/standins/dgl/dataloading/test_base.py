"""Samplers of one's own."""

import pytest

from gnnc.frontend.standins.dgl.dataloading.base import BlockSampler, Sampler


class Mine(Sampler):
    pass


class Blocks(BlockSampler):
    pass


def test_what_is_missing_is_named():
    with pytest.raises(NotImplementedError, match="Mine makes no batches: define sample$"):
        Mine().sample(None, None)
    with pytest.raises(NotImplementedError, match="Blocks makes no blocks: define sample_blocks$"):
        Blocks().sample_blocks(None, None)
