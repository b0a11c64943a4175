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

from .row_steps import ROW_STEPS
from .set_steps import SET_STEPS, Rule, Value

STEPS: dict[str, Rule] = {**SET_STEPS, **ROW_STEPS}
"""Every step by name."""


@dataclass(frozen=True)
class Step:
    """One operation of a plan."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])


def run_plan(
    plan: Sequence[Step], env: Mapping[str, Value], keep: Iterable[str] | None = None
) -> dict[str, Value]:
    """Run the steps in order and return the environment, or only the names in `keep` (other values
    are then freed after their last use).

    `env` holds the inputs and is not changed. Errors of a step (``IndexError`` for an index out of
    range, ``ValueError`` for sizes that do not fit) carry a note that names the step.
    """
    values = dict(env)
    wanted = None if keep is None else set(keep)
    last_use = {name: i for i, step in enumerate(plan) for name in (*step.inputs, *step.outputs)}
    for i, step in enumerate(plan):
        try:
            result = _run(step, values)
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
        return values
    if absent := wanted - values.keys():
        raise KeyError(f"the plan makes no value named {', '.join(sorted(absent))}")
    return {name: values[name] for name in wanted}


def _run(step: Step, values: Mapping[str, Value]) -> Value:
    if step.name not in STEPS:
        raise ValueError(f"unknown structure step {step.name!r}")
    missing = [name for name in step.inputs if name not in values]
    if missing:
        raise KeyError(f"no value named {', '.join(missing)}")
    return STEPS[step.name]([values[name] for name in step.inputs], step.attrs)
