"""`dgl.nn`: the layers of `dgl.nn.pytorch`, and `functional`."""

from . import functional, pytorch
from .pytorch import *  # noqa: F403
from .pytorch import __all__ as _names

__all__ = [*_names, "functional", "pytorch"]


def __getattr__(name: str) -> object:
    return getattr(pytorch, name)
