"""Runs programs built with the address and undefined-behaviour sanitizers, for test_sanitizer.

Every buffer is an allocation of its own and exact size, so an access beside a row is seen.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .compiled import INFER, TRAIN, Case
from .generate import SPECS, contractions, layouts, pointwise, reductions, whole_weights
from .random_rows import random_program
from .separate import call_separately
from .shared import LAYERS, SMALL

ELEMENTS = ("f32", "f64")
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


FILES = {p.stem: p.read_text() for p in sorted((Path(__file__).parent / "programs").glob("*.mlir"))}
PROGRAMS = {
    **{f"reductions {w}": (reductions(w, "f32"), SPLIT) for w in ("1", "3", "33")},
    **{f"pointwise {w}": (pointwise(w, "f32"), SPLIT) for w in ("1", "3", "33")},
    **{f"pointwise {elem}": (pointwise("3", elem), SPLIT) for elem in ("f64", "i32", "i64")},
    **{
        f"contractions {w}": (contractions(sizes(w), "f64", SPECS[:9], edges=False), TRAIN)
        for w in (1, 3, 33)
    },
    **{  # a few at a time: sanitized code takes the C compiler long
        f"contractions of edges {k}": (contractions(sizes(3), "f32", SPECS[k::6]), TRAIN)
        for k in range(6)
    },
    "whole weights": (whole_weights("f32"), SPLIT),
    "layouts": (layouts(3, 33, "f32"), SPLIT),
    **{name: (text, TRAIN) for name, text in {**LAYERS, **FILES}.items()},
    **{name: (text, INFER if "key" in text else TRAIN) for name, text in SMALL.items()},
    "dropout": (SMALL["dropout on nodes"], TRAIN),
    **{f"random {seed}": (random_program(seed, ELEMENTS[seed % 2]), TRAIN) for seed in range(40)},
}


def main(names: list[str]) -> None:
    """Check the programs of these names on all graphs."""
    for name in names:
        text, phases = PROGRAMS[name]
        case = Case.of(text, phases, sanitize=True)
        for seed, rows in GRAPHS:
            values = case.values(seed, rows)
            if name.startswith(("pointwise", "random")):  # other tests look at the results
                case.run(values, call=call_separately)
            else:
                case.check(values, tolerance=1e-3, call=call_separately)
        print("checked", name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
