"""The importer: FX graphs to `inter` programs.

`graph.py` runs the stages, the first three node by node (`walk.py`):

1. `calls/`: a node as one op with named arguments;
2. `memory/`: edits in place as values of the tensors that they change;
3. `rules/`: what the op means, as symbolic values (`values/`);
4. `emit/`: the values that results need, as ops over named sets.

`outputs.py` makes results that are views, `binding.py` tells how the program is called, and where
a node has no meaning `parts/` cuts the graph.
"""

from .binding import Imported
from .errors import ImportCrash, Unsupported
from .graph import import_graph
from .parts.split import Part, Split, refusals, split_graph
from .values.size_hints import first_shares, first_sizes

__all__ = [
    "ImportCrash",
    "Imported",
    "Part",
    "Split",
    "Unsupported",
    "first_shares",
    "first_sizes",
    "import_graph",
    "refusals",
    "split_graph",
]
