"""The importer: FX graphs to `inter` programs."""

from .binding import Imported
from .errors import ImportCrash, Unsupported
from .graph import import_graph
from .parts.split import Part, Split, refusals, split_graph
from .values.size_hints import first_sizes

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
