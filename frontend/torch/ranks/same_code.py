"""Whether all ranks run the same code: others could make other programs of one model, and wait for
messages that do not come."""

from __future__ import annotations

import torch

from .... import __version__
from ....runtime.ranks.communicator import Communicator
from ...compiler import source_hash


def check(communicator: Communicator) -> None:
    """
    Raises:
        Disagreement: ranks have other versions of gnnc or torch, or other source of gnnc.
    """
    if communicator.size == 1:
        return
    communicator.agree("the version of gnnc", gnnc_version())
    communicator.agree("the source of gnnc", source())
    communicator.agree("the version of torch", torch_version())


def gnnc_version() -> str:
    """That of this rank."""
    return __version__


def source() -> str:
    """A hash of what this rank runs."""
    return source_hash()


def torch_version() -> str:
    """That of this rank."""
    return torch.__version__
