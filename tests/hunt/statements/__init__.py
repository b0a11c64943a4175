"""The statements of the grammar, in groups: a program draws from some of them."""

from ..writer import Production
from . import edits, flow, graphs, modules, pointwise, reductions, shapes

GROUPS: dict[str, dict[Production, int]] = {
    "pointwise": pointwise.STATEMENTS,
    "edges of numbers": pointwise.ODD,
    "reductions": reductions.STATEMENTS,
    "totals": reductions.TOTALS,
    "shapes": shapes.STATEMENTS,
    "slices": shapes.SLICES,
    "graphs": graphs.STATEMENTS,
    "integers": graphs.INTEGERS,
    "modules": modules.STATEMENTS,
    "layers": modules.LAYERS,
    "edits": edits.STATEMENTS,
    "hidden edits": edits.HIDDEN,
    "state": edits.STATE,
    "modes": flow.MODES,
    "sizes": flow.SIZES,
    "data": flow.DATA,
}
"""Each statement with its weight."""
