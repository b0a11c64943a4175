"""What every test of dense batches runs in."""

import pytest
import torch


@pytest.fixture(autouse=True)
def double():
    """Numbers in float64, the same in every run."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)
