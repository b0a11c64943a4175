"""`gnnc.morph`: batches prepared by CPU and accelerator at once (frontend/morph)."""

from gnnc.frontend.morph import *  # noqa: F403
from gnnc.frontend.morph import __all__ as __all__
