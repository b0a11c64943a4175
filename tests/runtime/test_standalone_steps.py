"""The structure steps of programs without Python mean what those of Python do, op by op, on random
sets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from xdsl.dialects.func import FuncOp

from gnnc.codegen.common.structure_plan import StructurePlan
from gnnc.codegen.standalone.description import NoProgram
from gnnc.codegen.standalone.names import TYPES, CNames, literal
from gnnc.codegen.standalone.structure import StructureCode
from gnnc.dialects.inter.pointwise import PointwiseOp
from gnnc.dialects.inter.types import RowsType, SetType, rows, set_type
from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.phases import argument_names
from gnnc.runtime import standalone
from gnnc.runtime.cpu.toolchain import compiler, program_flags
from gnnc.runtime.sets.sets import SetData
from gnnc.runtime.sets.structure import STEPS, Step, run_plan

from .test_structure_meaning import ALL, REFUSED, arguments, given_set, outcome, program

HEAD = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "npy.h"
#include "steps.h"

static const char *from;

static void show(const char *to, const char *name, Type type, int64_t n, const void *data)
{
    const Array x = {.name = name, .type = type, .rank = 1, .dims = {n}, .data = (void *)data};
    write_array(to, &x);
}

static Rows given(const char *name, Type type, int rank)
{
    const int64_t any[] = {-1, -1, -1, -1};
    const Array x = read_array(from, name, type, rank, any);
    return rows_of(&x, 0);
}
"""


OF_RANKS = ("move", "all_reduce")
"""Steps of trainings over ranks: C that is built for ranks restricts no rows, so it has none."""


def functions() -> dict[str, FuncOp]:
    """The cases that have steps, by name."""
    found: dict[str, FuncOp] = {}
    for op, number in ALL:
        made = program(op, number)
        step = not issubclass(op, PointwiseOp) or op.SPEC.name in STEPS
        if made is not None and step and op.name[6:] not in (*REFUSED, *OF_RANKS):
            found[f"{op.name[6:]}_{number}"] = made[1]
    return found


FUNCTIONS = functions()


def case(name: str, func: FuncOp) -> str:
    """The C function that reads the arguments, runs the steps and writes what they make."""
    names = CNames()
    code = StructureCode(names)
    lines: list[str] = []
    args = dict(zip(argument_names(func), func.body.block.args, strict=True))
    for n, v in args.items():
        if isinstance(v.type, SetType):
            code.sets[n] = names.of("s_", n)
            lines.append(f'Set *{code.sets[n]} = new_set({literal(n)}, given("{n}", I64, 1).rows);')
    for n, v in args.items():
        if isinstance(v.type, SetType):
            for key, m in set_type(v).map_dict().items():
                partial = int("partial" in m.flags)
                column = names.of("c_", f"{n}_{key}")
                into = code.sets[m.codomain]
                lines.append(f'Rows {column} = given("{n}.{key}", I64, 1);')
                found = f'checked_map(&{column}, {into}->size, "{n}.{key}", {partial})'
                lines.append(f"give({code.sets[n]}, {literal(key)}, {found});")
        else:
            t = rows(v)
            variable = names.of("r_", n)
            lines.append(
                f'Rows {variable} = given("{n}", {TYPES[str(t.elem)]}, {len(t.dims) + 1});'
            )
            lines.append(f"(void){variable};")
            code.rows[n] = f"&{variable}"
    plan = StructurePlan(func, argument_names(func))
    lines += [code.step(*step) for step in json.loads(json.dumps(plan.steps))]
    last = func.body.block.last_op
    assert last is not None
    for k, v in enumerate(last.operands):
        key = plan.names[v]
        if isinstance(v.type, SetType):
            s = code.sets[key]
            lines.append(f'show(to, "{k}", I64, 1, &{s}->size);')
            for m in set_type(v).map_dict():
                found = f"map_of({s}, {literal(m)})"
                lines.append(f'show(to, "{k}.{m}", I32, {found}->size, {found}->at);')
        else:
            x = code.rows[key]
            size = f"({x})->rows * width({x})"
            lines.append(f'show(to, "{k}", ({x})->type, {size}, ({x})->data);')
    body = "".join(f"    {line}\n" for line in lines)
    return f"static void case_{name}(const char *to)\n{{\n{body}}}\n"


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs the case of a name: `steps CASE FROM TO`."""
    folder = tmp_path_factory.mktemp("steps")
    for name, text in standalone.sources().items():
        (folder / name).write_text(text)
    chosen = "".join(
        f'    if (strcmp(words[1], "{n}") == 0) case_{n}(words[3]);\n' for n in FUNCTIONS
    )
    main = f"int main(int n, char **words)\n{{\n    (void)n;\n    from = words[2];\n{chosen}}}\n"
    cases = "\n".join(case(n, f) for n, f in FUNCTIONS.items())
    (folder / "main.c").write_text(f"{HEAD}\n{cases}\n{main}")
    flags = [*program_flags(), "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=undefined"]
    sources = [str(f) for f in sorted(folder.glob("*.c"))]
    out = folder / "steps"
    done = subprocess.run(
        [*compiler().command, *flags, "-Wall", "-Werror", "-o", str(out), *sources, "-lm"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return out


def save(values: dict[str, Any], folder: Path) -> None:
    for name, x in values.items():
        if isinstance(x, SetVal):
            np.save(folder / f"{name}.npy", np.zeros(x.n, np.int64))
            for key, m in x.maps.items():
                np.save(folder / f"{name}.{key}.npy", np.asarray(m, np.int64))
        else:
            np.save(folder / f"{name}.npy", np.array(x, order="C"))


def in_python(func: FuncOp, values: dict[str, Any]) -> Any:
    """What the steps of Python make, or the type of what they raise."""
    plan = StructurePlan(func, argument_names(func))
    kinds = {set_type(a).label: set_type(a) for a in func.body.block.args if _is_set(a)}
    env = {k: given_set(v, kinds[k], values) if k in kinds else v for k, v in values.items()}
    steps = [Step(n, tuple(i), tuple(o), a) for n, i, o, a in json.loads(json.dumps(plan.steps))]
    return outcome(lambda: run_plan(steps, env))


def _is_set(v: Any) -> bool:
    return isinstance(v.type, SetType)


def check(func: FuncOp, made: Any, folder: Path) -> None:
    """Raises where what was written to a folder is not what Python made."""
    plan = StructurePlan(func, argument_names(func))
    last = func.body.block.last_op
    assert last is not None
    for k, v in enumerate(last.operands):
        value = made[plan.names[v]]
        found = np.load(folder / f"{k}.npy")
        if isinstance(value, SetData):
            assert found.tolist() == [value.size]
            for m in set_type(v).map_dict():
                np.testing.assert_array_equal(np.load(folder / f"{k}.{m}.npy"), value.map(m).array)
            continue
        assert isinstance(v.type, RowsType)
        assert found.dtype == value.dtype
        np.testing.assert_allclose(found, value.ravel(), 1e-12, equal_nan=True)


def test_steps_of_ranks_are_refused():
    for op, number in ALL:
        if op.name[6:] in OF_RANKS:
            made = program(op, number)
            assert made is not None
            with pytest.raises(NoProgram, match=f"no structure step '{op.name[6:]}'"):
                case("refused", made[1])


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values=arguments())
def test_steps(executable: Path, values: dict[str, Any]):
    folder = executable.parent / "arguments"
    folder.mkdir(exist_ok=True)
    save(values, folder)
    assert len(FUNCTIONS) > 100
    for name, func in FUNCTIONS.items():
        to = executable.parent / "results"
        done = subprocess.run(
            [str(executable), name, str(folder), str(to)], capture_output=True, text=True
        )
        made = in_python(func, values)
        if isinstance(made, type):
            assert done.returncode == 1, (name, done.stderr)
            assert done.stderr.startswith("error: "), (name, done.stderr)
            continue
        assert done.returncode == 0, (name, done.stderr)
        try:
            check(func, made, to)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
