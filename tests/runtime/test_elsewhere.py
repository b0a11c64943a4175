"""Programs that run elsewhere: their calls give results of the right sizes."""

import json
from typing import Any

import numpy as np

from gnnc.runtime.program import Program
from gnnc.runtime.sets.sets import SetData


def buffer(kind: str, name: str, dtype: str, row: list[int], size: int) -> dict[str, Any]:
    domain = ["N", []]
    given = {"kind": kind, "name": name, "dtype": dtype, "row": row, "bytes": size}
    return {**given, "domain": domain}


BUFFERS = [
    buffer("input", "x", "f32", [2], 4),
    buffer("output", "y", "f64", [3], 8),
    buffer("output", "right", "i1", [], 1),
]
ARTIFACT = {
    "target": "cuda-built",
    "runtime": "elsewhere",
    "source": "no C at all",
    "phases": {
        "forward": {
            "name": "forward",
            "kernels": [],
            "launches": [],
            "workspace": 0,
            "sizes": [],
            "counts": [],
            "required": [],
            "buffers": BUFFERS,
        }
    },
    "structure": {"steps": [], "rows": {}, "inputs": []},
    "maps": {},
    "gradients": {},
    "cotangents": {},
    "read_for": {},
}


def test_outputs_are_written_and_nothing_else():
    program = Program(json.dumps(ARTIFACT))
    graph = program.on_graph({"N": SetData(5)}, {})
    x = np.full((5, 2), 7, np.float32)
    y = np.full((6, 3), 7, np.float64)
    right = np.zeros(6, np.bool_)
    addresses = {k: a.ctypes.data for k, a in enumerate((x, y, right))}
    graph.phases["forward"].call(addresses)
    assert (x == 7).all()
    assert (y[:5] == 0).all() and (y[5] == 7).all()
    assert right.tolist() == [True] * 5 + [False]
