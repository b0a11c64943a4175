"""Published data for `gnnc bench`, read once and handed to every contestant as one file."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ..frontend.tools.children import Child, Refused
from .graphs import GRAPHS, Real


def add_argument(parser: argparse.ArgumentParser) -> None:
    """`--data`, of every command that takes graphs by name."""
    names = ", ".join(name for name, graph in GRAPHS.items() if isinstance(graph, Real))
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        default=None,
        help=f"where the real data lies ({names}), in PyTorch Geometric's folders of raw files",
    )


@contextmanager
def prepared(name: str, data: str | None) -> Generator[str | None]:
    """The file that holds the graph of that name while the context lasts; None for a drawn one.

    The raw files are copied first: PyG writes beside them.

    Raises:
        Refused: a real graph without a folder, or one that the folder does not have.
    """
    graph = GRAPHS[name]
    if not isinstance(graph, Real):
        yield None
        return
    folder = _raw_folder(name, graph, data)
    with tempfile.TemporaryDirectory(prefix="gnnc-bench-") as place:
        file = str(Path(place) / "graph.npz")
        # PyG numbers AIFB's nodes in the order of a set of strings.
        with Child("gnnc.bench.real_child", environment={"PYTHONHASHSEED": "0"}) as child:
            child.ask({"graph": name, "raw": str(folder), "place": place, "file": file})
        yield file


def check(name: str, data: str | None) -> None:
    """Raises Refused where `prepared` would for want of files, before anything is measured."""
    graph = GRAPHS[name]
    if isinstance(graph, Real):
        _raw_folder(name, graph, data)


def _raw_folder(name: str, graph: Real, data: str | None) -> Path:
    if data is None:
        raise Refused(
            f"--graphs {name}: this is real data, which gnnc does not bring along; name the "
            f"folder that holds {graph.folder}/raw with --data FOLDER"
        )
    raw = Path(data) / graph.folder / "raw"
    missing = [f for f in graph.files if not (raw / f).is_file()]
    if missing:
        raise Refused(f"--data {data}: {name} needs {raw / missing[0]}, which is not there")
    return raw
