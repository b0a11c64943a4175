"""Structure computations as plain data: the part of `prepare` that makes sets and integer rows, run
step by step in NumPy and structure.c.

A plan is a list of steps. A step has the name of an `inter` operation, names of its inputs and
outputs in an environment, and attributes that JSON can hold. A value is a `SetData`, or an array of
rows: its first axis numbers the rows of a set, or has length 1 for a value without a set (`unit`).
A value on every row of a set may also be given as its single `unit` row; steps that need rows
repeat it. Each step is described at its function, in `set_steps` and `row_steps`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..carrier import Carrier
from .row_steps import ROW_STEPS, TAKE_IMAGES
from .set_steps import SET_STEPS, Images, Rule, Value, on_rows

MOVE, ALL_REDUCE = "move", "all_reduce"
"""The steps that need other ranks."""
STEPS: dict[str, Rule] = {**SET_STEPS, **ROW_STEPS}
"""Every step that one rank does alone, by name."""


@dataclass(frozen=True)
class Step:
    """One operation of a plan."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])


def run_plan(
    plan: Sequence[Step],
    env: Mapping[str, Value],
    keep: Iterable[str] | None = None,
    carrier: Carrier | None = None,
) -> dict[str, Value]:
    """Run the steps in order and return the environment, or only the names in `keep` (other values
    are then freed after their last use).

    `env` holds the inputs and is not changed. Rows that ranks exchange go through a `carrier`,
    which all of them run the plan with. Errors of a step (``IndexError`` for an index out of
    range, ``ValueError`` for sizes that do not fit) carry a note that names the step.
    """
    values: dict[str, Value | Images] = dict(env)
    wanted = None if keep is None else set(keep)
    last_use = {name: i for i, step in enumerate(plan) for name in (*step.inputs, *step.outputs)}
    for i, step in enumerate(plan):
        try:
            result = _run(step, values, carrier)
        except (IndexError, ValueError, TypeError, KeyError) as error:
            inputs = ", ".join(step.inputs)
            error.add_note(f"in structure step {i}: {step.outputs[0]} = {step.name}({inputs})")
            raise
        (output,) = step.outputs
        values[output] = result
        if wanted is not None:
            for name in {*step.inputs, output} - wanted:
                if last_use[name] == i:
                    del values[name]
    if wanted is None:
        return {name: _in_full(x) for name, x in values.items()}
    if absent := wanted - values.keys():
        raise KeyError(f"the plan makes no value named {', '.join(sorted(absent))}")
    return {name: _in_full(values[name]) for name in wanted}


def _in_full(x: Value | Images) -> Value:
    return x.rows() if isinstance(x, Images) else x


def _run(
    step: Step, values: Mapping[str, Value | Images], carrier: Carrier | None
) -> Value | Images:
    if step.name not in (MOVE, ALL_REDUCE) and step.name not in STEPS:
        raise ValueError(f"unknown structure step {step.name!r}")
    missing = [name for name in step.inputs if name not in values]
    if missing:
        raise KeyError(f"no value named {', '.join(missing)}")
    inputs: list[Any] = [values[name] for name in step.inputs]
    if step.name not in TAKE_IMAGES:
        inputs = [_in_full(x) for x in inputs]
    if step.name == MOVE:
        return _moved(inputs, step.attrs, carrier)
    if step.name == ALL_REDUCE:
        return _of_all(inputs, step.attrs, carrier)
    return STEPS[step.name](inputs, step.attrs)


def _moved(inputs: Sequence[Any], attrs: Mapping[str, Any], carrier: Carrier | None) -> Value:
    """move (S, H, x) {plan}: the rows of messages S as those of H, where they arrive."""
    if carrier is None:
        raise ValueError("sets are made of rows of other ranks: give a carrier")
    source, target, x = inputs
    sent = np.ascontiguousarray(on_rows(x, source.size))
    received = np.empty((target.size, *sent.shape[1:]), sent.dtype)
    carrier.start(attrs["plan"], sent, received)
    carrier.wait(attrs["plan"])
    return received


def _of_all(inputs: Sequence[Any], attrs: Mapping[str, Any], carrier: Carrier | None) -> Value:
    """all_reduce (x) {kind}: the sum (max, min, mul) of what ranks have where a number is."""
    if carrier is None:
        raise ValueError("sets are made of numbers of all ranks: give a carrier")
    whole = np.array(inputs[0], order="C")
    carrier.all_reduce(attrs["kind"], [whole])
    return whole
