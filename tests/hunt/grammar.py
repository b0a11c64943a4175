"""A random program for each seed.

Each program draws a few groups of statements only (programs of everything would nearly all hold
something that sends them to torch whole), then 5 to 40 statements of these; every variable has a
type, so that nearly all programs are valid.
"""

from __future__ import annotations

import random
from typing import Any

from .program import Call, Program
from .statements import GROUPS
from .writer import Nothing, Production, Var, Writer

ALWAYS = {"pointwise": 0.8, "graphs": 0.6, "modules": 0.35}
"""The chance of a group; 0.22 for the others."""
SIZES = (0, 1, 2, 3, 50)


UNSETTLED = {
    "nan": (
        *("elu(", "selu(", "celu(", "ELU(", "SELU(", "CELU(", "atan2("),
        *("hardtanh(", "relu6(", "hardswish(", "Hardtanh(", "ReLU6(", "Hardswish("),
    ),
    "ties": ("atan2(",),
}
"""What torch itself has no one answer for, by the numbers that are drawn: the slopes of elu and
hardtanh and their kin at NaN are others in its vectors than in what is left of a row, and so is
which of 0 and -0 is the larger."""


def generate(seed: int) -> Program:
    """The program of a seed."""
    draw = random.Random(seed)
    g = Writer(draw, module=draw.random() < 0.6)
    arguments(g)
    statements = drawn_groups(draw)
    attempts = [0]

    def block(count: int) -> None:
        if g.depth > 2:
            return
        done = 0
        while done < count and attempts[0] < 400:
            attempts[0] += 1
            statement = draw.choices(list(statements), list(statements.values()))[0]
            if one(g, statement):
                done += 1

    g.block = block
    block(draw.choice((5, 6, 8, 10, 12, 16, 20, 28, 40)))
    g.line(f"return {results(g)}")
    code = text(g)
    numbers = draw.choices(("normal", "ties", "nan"), (8, 2, 1))[0]
    if any(name in code for name in UNSETTLED.get(numbers, ())):
        numbers = "normal"
    settings: dict[str, Any] = {
        "dtype": "float64" if draw.random() < 0.65 else "float32",
        "values": numbers,
        "seed": seed,
    }
    return Program(code, g.arguments, calls(g), settings)


def drawn_groups(draw: random.Random) -> dict[Production, int]:
    chosen = [n for n in GROUPS if draw.random() < ALWAYS.get(n, 0.22)]
    if not chosen:
        chosen = ["pointwise"]
    return {s: w for n in chosen for s, w in GROUPS[n].items()}


def one(g: Writer, statement: Production) -> bool:
    """Write one statement, or nothing where no variables suit."""
    before = (list(g.lines), list(g.made), dict(g.arguments), list(g.vars), g.count)
    try:
        statement(g)
        return True
    except Nothing:
        g.lines, g.made, g.arguments, g.vars, g.count = before
        return False


def arguments(g: Writer) -> None:
    """Features of nodes and edges, edges, and some of what else a function may take."""
    how = g.draw.choices(("leaf", "graph", ""), (5, 2, 3))[0]
    odd = ", transposed" if g.chance(0.1) else ""
    g.argument("x", "N 4" + (f", {how}" if how else "") + odd)
    g.argument("e", "2 E, < N")
    possible = {
        "w": g.one("E", "E 1", "E 4", "E, leaf", "E 1, leaf", "E 4, leaf"),
        "y": g.one("N 4", "N 4, leaf", "N", "N 1", "N 4, graph"),
        "i": g.one("K, < N", "K, < N", "K, < N, negative"),
        "k": "N, < 3",
        "r": "E, < 2",
        "batch": "N, < 3, sorted",
        "m": "N, bool",
        "q": "E, bool",
        "b": g.one("4", "4, leaf", "1 4"),
        "t": "number",
        "z": g.one("P 4", "P 1, leaf"),
    }
    for name, spec in possible.items():
        if g.chance(0.25):
            g.argument(name, spec)


def results(g: Writer) -> str:
    """What the program returns: mostly what came last."""
    made = [v for v in g.vars if v.name.startswith("v")]
    if not made:
        made = g.vars[:1]
    late = made[-4:]
    count = g.draw.choices((1, 2, 3, 4), (5, 4, 2, 1))[0]
    chosen: list[Var] = [late[-1]]
    while len(chosen) < count:
        pool = late if g.chance(0.6) else [v for v in g.vars if v.kind != "scalar"]
        chosen.append(g.draw.choice(pool))
    names = [v.name if g.chance(0.93) or v.kind != "float" else view(g, v) for v in chosen]
    if len(names) == 1:
        return names[0] if g.chance(0.9) else f"({names[0]},)"
    if g.chance(0.15):
        return "{" + ", ".join(f"'{chr(97 + k)}': {n}" for k, n in enumerate(names)) + "}"
    if g.chance(0.1):
        return "[" + ", ".join(names) + "]"
    if g.chance(0.1):
        return f"{names[0]}, ({', '.join(names[1:])},)"
    return ", ".join(names)


def view(g: Writer, v: Var) -> str:
    """A view of a result; of an argument too."""
    if not v.dims:
        return v.name
    return v.name + g.one(
        "[...]", ".detach()", ".view_as(" + v.name + ")", "[:1]", ".unsqueeze(0)", ".flatten()"
    )


def calls(g: Writer) -> tuple[Call, ...]:
    letters = sorted({d for a in g.arguments.values() for d in a.dims if isinstance(d, str)})
    out: list[Call] = []
    after = g.draw.choices(
        ("backward", "double", "between", "retain", "batched"), (12, 2, 2, 2, 1)
    )[0]
    for k in range(g.draw.choice((1, 2, 3, 3, 4))):
        sizes = {d: g.draw.choice(SIZES) for d in letters}
        if sizes["N"] == 0 and g.chance(0.9):
            sizes |= {d: 0 for d in ("E", "K") if d in sizes}  # nothing to point at
        call = Call(sizes, train=True, after=after)
        if k and g.chance(0.25):
            call = vary(g, call, out[-1])
        out.append(call)
    return tuple(out)


def vary(g: Writer, call: Call, last: Call) -> Call:
    """Another mode, or something done between calls."""
    sizes, usual = call.sizes, call.after
    return g.draw.choice(
        [
            Call(sizes, train=False, after=usual),
            Call(sizes, grad="no_grad"),
            Call(sizes, grad="inference"),
            Call(sizes, before="hook", after=usual),
            Call(sizes, before="freeze", after=usual),
            Call(last.sizes, before="again", after=usual),
            Call(last.sizes, before="data", after=usual),
            Call(last.sizes, before="edit", after=usual),
        ]
    )


def text(g: Writer) -> str:
    """The class or function."""
    names = ", ".join(g.arguments)
    deep = "        " if g.module else "    "
    body = "".join(f"{deep}{line}\n" for line in g.lines)
    if not g.module:
        return f"def function({names}):\n{body}"
    made = "".join(f"        {line}\n" for line in g.made)
    return (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{made}\n    def forward(self, {names}):\n{body}"
    )
