"""Runs programs built with the address and undefined-behaviour sanitizers, for test_sanitizer.

Every buffer is an allocation of its own and exact size, so an access beside a row is seen.
"""

from __future__ import annotations

import sys

from .compiled import TRAIN, Case
from .generate import SPECS, contractions, layouts, pointwise, reductions
from .shared import LAYERS, SMALL

SPLIT = "unify-sets,split-phases"
GRAPHS = (
    (0, None),
    (1, {"g": 0}),
    (2, {"N": 1, "g": 7}),
    (3, {"N": 1, "g": 0}),
    (4, {"N": 40, "g": 300}),
)


def sizes(width: int) -> dict[str, int]:
    """Extents of the letters of contractions."""
    return {"a": 2, "b": 3, "h": 2, "l": 3, "k": width, "f": width + 1}


PROGRAMS = {
    **{f"reductions {w}": (reductions(w, "f32"), SPLIT) for w in ("1", "3", "33")},
    **{f"pointwise {w}": (pointwise(w, "f32"), SPLIT) for w in ("1", "3", "33")},
    "pointwise i64": (pointwise("3", "i64"), SPLIT),
    **{
        f"contractions {w}": (contractions(sizes(w), "f64", SPECS[:9], edges=False), TRAIN)
        for w in (1, 3, 33)
    },
    "layouts": (layouts(3, 33, "f32"), SPLIT),
    **{name: (LAYERS[name], TRAIN) for name in ("gcn", "gat", "rgat", "hetero")},
    **{
        name: (SMALL[name], TRAIN)
        for name in ("stack and part", "else", "last", "linear of many rows")
    },
    "dropout": (SMALL["dropout on nodes"], TRAIN),
}


def main(names: list[str]) -> None:
    """Check the programs of these names on all graphs."""
    for name in names:
        text, phases = PROGRAMS[name]
        case = Case.of(text, phases, sanitize=True)
        for seed, rows in GRAPHS:
            values = case.values(seed, rows)
            if name.startswith("pointwise"):
                case.run(values, separate=True)  # the results are those of test_pointwise
            else:
                case.check(values, tolerance=1e-3, separate=True)
        print("checked", name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
