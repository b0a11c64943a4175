"""The importer: FX graphs to `inter` programs."""

from .binding import Imported
from .errors import ImportCrash, Unsupported
from .first_sizes import first_sizes
from .graph import import_graph
from .split import Part, Split, refusals, split_graph

__all__ = [
    "ImportCrash",
    "Imported",
    "Part",
    "Split",
    "Unsupported",
    "first_sizes",
    "import_graph",
    "refusals",
    "split_graph",
]
