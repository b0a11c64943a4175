"""The record of a target: all that the compiler knows of it before it prints.

A pass asks the record instead of knowing a machine. It finds it by name: passes that need one have
an option `target`, and `pipeline` (passes/driver/pipelines.py) spells it where it is not the
default. Nothing of what a record names is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Speeds:
    """What one program is weighed against another by. Only the ratios decide."""

    gemm_flops: float
    """Multiplications and additions a second in a product of tall matrices."""
    gather_bytes: float
    """Bytes a second when whole rows are read in an order given by an index."""
    stream_bytes: float
    """Bytes a second when rows are read or written in order."""
    near_bytes: float
    """Bytes a second when rows are gathered from a matrix that lies in the caches: a weight."""
    entry_seconds: float
    """What an entry of a sparse matrix takes at least, however short the row that is gathered."""


@dataclass(frozen=True)
class Caches:
    """Sizes of what lies near a core, in bytes."""

    line: int
    """What memory is read in."""
    block: int
    """What the block-local rows of one nest may take of the caches near the core."""
    stack: int
    """What they may take of a thread's stack, however wide they are."""
    partials: int
    """What the partial sums of all chunks of one nest may take."""
    near_partials: int
    """What they take at most while enough chunks remain to share among threads."""
    partials_a_unit: int
    """What a chunk's partial sums may take for each unit of its work (an edge, or 512
    multiplications)."""


@dataclass(frozen=True)
class Nests:
    """What a nest may hold, and what is worth one."""

    group_matrix: int
    """Bytes that the matrix of a group of rows may take."""
    register_sums: int
    """Sums of so many numbers stay in registers."""
    replayed_loads: int
    replayed_numbers: int
    """What a row per edge is made again from, for each who reads it, rather than stored: so many
    reads of at most so many numbers, and one heavy function of as many."""
    merged_ops: int
    merged_products: int
    """So many ops and products may be those of several nests in one."""
    narrow: int
    """A row of so few numbers is read as a scalar is."""
    narrow_product: int
    """A row of so few numbers is multiplied with a matrix again by each loop over the members of
    groups that reads the product, rather than stored as the longer row that this is."""
    long_row: int
    """Numbers of a single row that are worth a nest of their own."""
    piece: int
    """Numbers of a piece of such a row, at most."""
    panels: Mapping[int, int]
    """Vectors of a panel of a matrix, by their bytes: of each row a tile of products keeps as many
    sums in registers."""
    masked: frozenset[int]
    """Bytes of vectors of which a part can be read and written without touching what lies behind
    it."""
    enough_chunks: int
    """Chunks of different cost that all threads are busy with."""


@dataclass(frozen=True)
class Target:
    """A target.

    `about` is what its text is, in a few words, and `printer` the module that prints it: a function
    `print_module(module)` that gives a `Printed` (codegen/common/host.py). `runtime` names who runs
    what is printed (runtime/program.py).

    `vector_bytes` is the longest vector; `on` gives the record for a machine with shorter ones.
    With `remote_reads` a phase can read rows of other ranks where they lie. `steps` are the names
    of the ops that a phase may consist of, and `tail` the passes from the
    lowered module to one that prints, as gnn-opt spells them, `{vector_bytes}` for the width.
    """

    name: str
    about: str
    printer: str
    runtime: str
    vector_bytes: int
    remote_reads: bool
    steps: tuple[str, ...]
    tail: tuple[str, ...]
    speeds: Speeds
    caches: Caches
    nests: Nests

    def on(self, vector_bytes: int) -> Target:
        """The target on a machine whose vectors have so many bytes."""
        return replace(self, vector_bytes=min(self.vector_bytes, vector_bytes))

    def tail_passes(self) -> list[str]:
        """The passes of its own."""
        return [p.replace("{vector_bytes}", str(self.vector_bytes)) for p in self.tail]
