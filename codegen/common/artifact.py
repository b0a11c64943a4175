"""What a compiled program is: source text and plain data, as JSON text that can be cached."""

from __future__ import annotations

import json
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ...dialects.attributes import COTANGENTS, GRADIENTS, NAME
from ...dialects.inter.sets import SetEnv
from .host import Printed
from .structure_plan import StructurePlan

FORMAT = 3


def build_artifact(module: ModuleOp, printed: Printed, target: str, runtime: str) -> str:
    """The artifact of a lowered module and what a target's printer made of it.

    A JSON object: `target` and `runtime` (passes/targets), `source`, `phases` (name -> interface,
    codegen/common/host.py), `structure` (steps, the rows it hands on), `maps` (set -> map ->
    codomain), `gradients` (output of @backward -> argument), `cotangents` (input of @backward ->
    result).

    Raises:
        PassFailedException: its structure has no steps.
    """
    data: dict[str, Any] = {
        "format": FORMAT,
        "target": target,
        "runtime": runtime,
        "source": printed.source,
        "phases": {p.name: p.data() for p in printed.phases},
        "structure": {"steps": [], "rows": {}, "inputs": []},
        "maps": {},
        "gradients": names_on_backward(module, GRADIENTS),
        "cotangents": names_on_backward(module, COTANGENTS),
    }
    func = next(
        (
            f
            for f in module.body.block.ops
            if isinstance(f, FuncOp) and f.sym_name.data == "structure"
        ),
        None,
    )
    if func is not None:
        inputs, results = names_of(func)
        plan = StructurePlan(func, inputs)
        data["structure"] = {
            "steps": plan.steps,
            "rows": plan.returned(func, results),
            "inputs": inputs,
        }
        env = SetEnv.of(func)
        data["maps"] = {s: {m: v.codomain for m, v in i.maps.items()} for s, i in env.sets.items()}
    return json.dumps(data)


def names_on_backward(module: ModuleOp, attribute: str) -> dict[str, str]:
    """Output of @backward -> the argument whose gradient it is, or input -> the result whose
    cotangent it is."""
    for func in module.body.block.ops:
        if isinstance(func, FuncOp) and func.sym_name.data == "backward":
            found = func.attributes.get(attribute)
            if isinstance(found, DictionaryAttr):
                return {k: v.data for k, v in found.data.items() if isinstance(v, StringAttr)}
    return {}


def names_of(func: FuncOp) -> tuple[list[str], list[str]]:
    """`inter.name` of the arguments and of the results."""

    def names(attrs: Any, count: int) -> list[str]:
        out: list[str] = []
        for k in range(count):
            name = attrs.data[k].data.get(NAME) if attrs is not None else None
            out.append(name.data if isinstance(name, StringAttr) else f"_{k}")
        return out

    return names(func.arg_attrs, len(func.body.block.args)), names(
        func.res_attrs, len(func.function_type.outputs)
    )
