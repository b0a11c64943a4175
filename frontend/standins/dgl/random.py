"""The generator behind random graphs: like DGL's, it is not torch's, which training draws from."""

from __future__ import annotations

import torch

generator = torch.Generator()
generator.manual_seed(torch.initial_seed())


def seed(val: int) -> None:
    """Starts the generator anew."""
    generator.manual_seed(val)
