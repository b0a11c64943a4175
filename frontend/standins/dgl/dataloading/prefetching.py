"""Features that are gathered when a batch is made, by the thread that makes it. All others are
gathered when they are first read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gnnc.frontend.torch.loader.filtering import at_rows

from ..base import DGLError
from ..frames import Frame, Inherited
from ..graph import DGLGraph

Names = Sequence[str] | Mapping[Any, Sequence[str]] | None
"""Names of features, or, of several types, a dict of these by type."""


def set_node_lazy_features(g: DGLGraph, feature_names: Names) -> None:
    """Gathers features of the nodes of a graph that a sampler made."""
    set_src_lazy_features(g, feature_names)


def set_src_lazy_features(g: DGLGraph, feature_names: Names) -> None:
    """Gathers features of the source nodes of a block that a sampler made."""
    _fetch(dict(g._source_frames), feature_names, "node")


def set_dst_lazy_features(g: DGLGraph, feature_names: Names) -> None:
    """Gathers features of the target nodes of a block that a sampler made."""
    _fetch(dict(g._target_frames), feature_names, "node")


def set_edge_lazy_features(g: DGLGraph, feature_names: Names) -> None:
    """Gathers features of the edges of a graph that a sampler made."""
    if isinstance(feature_names, Mapping):
        feature_names = {g._find_etype(etype): names for etype, names in feature_names.items()}
    _fetch(dict(g._edge_frames), feature_names, "edge")


def _fetch(frames: Mapping[Any, Frame], names: Names, what: str) -> None:
    for kind, name in _pairs(frames, names, what):
        if kind not in frames or name not in frames[kind]:
            raise DGLError(f"There is no {what} feature {name!r} of {kind!r} to prefetch.")
        frame = frames[kind]
        if isinstance(frame, Inherited):
            frame.fetch(name, at_rows)


def _pairs(frames: Mapping[Any, Frame], names: Names, what: str) -> Iterator[tuple[Any, str]]:
    if not names:
        return
    if isinstance(names, Mapping):
        for kind, few in names.items():
            yield from ((kind, name) for name in few)
        return
    if len(frames) != 1:
        raise DGLError(f"There are several {what} types: name features to prefetch by type.")
    (kind,) = frames
    yield from ((kind, name) for name in names)
