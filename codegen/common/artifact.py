"""What a compiled program is: source text and plain data, as JSON text that can be cached."""

from __future__ import annotations

import json
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ...dialects.attributes import COTANGENTS, GRADIENTS, READ_FOR
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import RowsType
from ...dialects.signature import arguments, results
from .host import Printed
from .structure_plan import StructurePlan

FORMAT = 6


def build_artifact(module: ModuleOp, printed: Printed, target: str, runtime: str) -> str:
    """The artifact of a lowered module and what a target's printer made of it.

    A JSON object: `target` and `runtime` (passes/targets), `source`, `phases` (name -> interface,
    codegen/common/host.py), `device` and `kernels` (the text for a device and the names of what it
    exports, empty where there is none), `structure` (steps, the rows it hands on), `maps` (set ->
    map -> codomain), `gradients` (output of @backward -> argument), `cotangents` (input of
    @backward -> result), `read_for` (output of @backward -> the inputs that it is computed from).

    Raises:
        PassFailedException: its structure has no steps.
    """
    data: dict[str, Any] = {
        "format": FORMAT,
        "target": target,
        "runtime": runtime,
        "source": printed.source,
        "device": "\n".join(filter(None, [printed.library, printed.device])),
        "kernels": printed.kernels,
        "phases": {p.name: p.data() for p in printed.phases},
        "structure": {"steps": [], "rows": {}, "inputs": []},
        "maps": {},
        "gradients": names_on_backward(module, GRADIENTS),
        "cotangents": names_on_backward(module, COTANGENTS),
        "read_for": lists_on_backward(module, READ_FOR),
    }
    if (func := function(module, "structure")) is not None:
        inputs = [name for name, _, _ in arguments(func)]
        plan = StructurePlan(func, inputs)
        rows = {n: plan.names[v] for n, v, _ in results(func) if isinstance(v.type, RowsType)}
        steps = plan.needed(rows.values())
        data["structure"] = {"steps": steps, "rows": rows, "inputs": inputs}
        env = SetEnv.of(func)
        data["maps"] = {s: {m: v.codomain for m, v in i.maps.items()} for s, i in env.sets.items()}
    return json.dumps(data)


def names_on_backward(module: ModuleOp, attribute: str) -> dict[str, str]:
    """Output of @backward -> the argument whose gradient it is, or input -> the result whose
    cotangent it is."""
    func = function(module, "backward")
    found = None if func is None else func.attributes.get(attribute)
    if not isinstance(found, DictionaryAttr):
        return {}
    return {k: v.data for k, v in found.data.items() if isinstance(v, StringAttr)}


def lists_on_backward(module: ModuleOp, attribute: str) -> dict[str, list[str]]:
    """The same of lists of names."""
    func = function(module, "backward")
    found = None if func is None else func.attributes.get(attribute)
    if not isinstance(found, DictionaryAttr):
        return {}
    return {
        k: [x.data for x in cast(ArrayAttr[Attribute], v) if isinstance(x, StringAttr)]
        for k, v in found.data.items()
        if isinstance(v, ArrayAttr)
    }


def function(module: ModuleOp, name: str) -> FuncOp | None:
    """The function of a name, where the module has one."""
    named = (f for f in module.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == name)
    return next(named, None)
