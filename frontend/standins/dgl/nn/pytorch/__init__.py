"""DGL's layers for PyTorch, in plain PyTorch."""

from . import conv, factory, glob, hetero, linear, link, softmax, utils
from .conv import *  # noqa: F403
from .factory import *  # noqa: F403
from .glob import *  # noqa: F403
from .hetero import *  # noqa: F403
from .linear import *  # noqa: F403
from .link import *  # noqa: F403
from .softmax import *  # noqa: F403
from .utils import *  # noqa: F403

_MODULES = (conv, factory, glob, hetero, linear, link, softmax, utils)
__all__ = [name for module in _MODULES for name in module.__all__]
__all__ += ["conv", "factory", "glob", "hetero", "linear", "link", "softmax", "utils"]


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    layers = sorted(layer for layer in __all__ if layer[0].isupper())
    raise AttributeError(f"there is no {name} here; the layers are {', '.join(layers)}")
