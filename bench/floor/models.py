"""The models that have a program by hand, by their names in `gnnc bench`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .gat import gat
from .gcn import gcn
from .gin import gin
from .rgcn import rgcn
from .sage import sage
from .step import Floor

PROGRAMS: Mapping[str, Callable[..., Floor]] = {
    "gcn": gcn,
    "sage": sage,
    "gin": gin,
    "gat": gat,
    "rgcn": rgcn,
}
"""Each takes a model written for PyG and what it is called on."""
