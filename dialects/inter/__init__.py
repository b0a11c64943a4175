"""The `inter` dialect: what a graph neural network computes, on finite sets with named maps and
rows over them."""

from __future__ import annotations

from xdsl.ir import Dialect

from .pointwise import POINTWISE_OPS
from .ranks import RANK_OPS
from .reduce import REDUCE_OPS
from .shapes import SHAPE_OPS
from .structure import STRUCTURE_OPS
from .types import MapAttr, RowsType, SetType
from .values import VALUE_OPS

Inter = Dialect(
    "inter",
    [*STRUCTURE_OPS, *VALUE_OPS, *SHAPE_OPS, *REDUCE_OPS, *RANK_OPS, *POINTWISE_OPS.values()],
    [MapAttr, SetType, RowsType],
)
