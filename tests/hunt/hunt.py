"""Runs ranges of seeds, in processes of their own, with a log that a later run continues."""

from __future__ import annotations

import collections
import gc
import json
import os
import random
import re
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.guards

from .grammar import generate
from .judge import Verdict, judge
from .program import Program
from .shrink import shrink, signature

BATCH = 25
"""Programs that one process runs."""
LIMIT = 240
"""Seconds for a program."""
COMPILED_EVERY = 4
MODES = ("interpreted", "compiled")

Record = dict[str, Any]


class Log:
    """One file a range of seeds: a line of JSON for each program and mode."""

    def __init__(self, folder: Path, first: int, last: int) -> None:
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / f"{first}-{last}.jsonl"

    def add(self, record: Record) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def records(self) -> list[Record]:
        if not self.path.exists():
            return []
        lines = self.path.read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]


def tasks(first: int, last: int) -> list[tuple[int, str]]:
    """Every seed interpreted, some compiled as well."""
    out: list[tuple[int, str]] = []
    for seed in range(first, last + 1):
        out.append((seed, "interpreted"))
        if seed % COMPILED_EVERY == 0:
            out.append((seed, "compiled"))
    return out


def program_of(seed: int, mode: str) -> Program:
    """The program of a seed; compiled it has two calls at most, of one mode: C takes its time."""
    program = generate(seed)
    if mode == "interpreted":
        return program
    draw = random.Random(seed)
    chosen = draw.choice(program.calls)
    sizes = draw.choice(program.calls).sizes
    return replace(program, calls=(chosen, replace(chosen, sizes=sizes, before="")))


def hunt(first: int, last: int, folder: Path, jobs: int = 1) -> list[Record]:
    """Run what the log lacks; returns all records of the range."""
    log = Log(folder, first, last)
    done = {(r["seed"], r["mode"]) for r in log.records()}
    left = [t for t in tasks(first, last) if t not in done]
    prepare(log.folder)
    running: dict[int, list[tuple[int, str]]] = {}
    while left or running:
        while left and len(running) < jobs:
            batch, left = left[:BATCH], left[BATCH:]
            running[start(batch, log)] = batch
        pid, status = os.wait()
        batch = running.pop(pid)
        if status != 0:
            done = {(r["seed"], r["mode"]) for r in log.records()}
            rest = [t for t in batch if t not in done]
            if rest:
                log.add(crashed(*rest[0], os.waitstatus_to_exitcode(status)))
                left = rest[1:] + left
    return log.records()


def prepare(folder: Path) -> None:
    """What all processes share: forks are cheap after it."""
    os.environ.setdefault("GNNC_CACHE", str(folder / "cache"))
    torch.set_num_threads(1)
    # it times each new guard, several times
    torch._dynamo.guards.profile_guard_manager = lambda *args: 0.0  # type: ignore[assignment]
    gc.collect()
    gc.freeze()


def start(batch: Sequence[tuple[int, str]], log: Log) -> int:
    """A process that runs a batch; returns its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.chdir(log.folder)  # reproducers are written there
        for seed, mode in batch:
            signal.alarm(LIMIT)
            log.add(run(seed, mode))
            signal.alarm(0)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def run(seed: int, mode: str) -> Record:
    """One program, as its line in the log."""
    began = time.process_time()
    try:
        verdict = judge(program_of(seed, mode), mode == "compiled")
    except Exception as error:  # the hunt's own failure
        trace = traceback.format_exc()[-1500:]
        return {"seed": seed, "mode": mode, "kinds": [f"hunt: {error!r}"], "details": [trace]}
    return record(seed, mode, verdict, time.process_time() - began)


def record(seed: int, mode: str, verdict: Verdict, seconds: float) -> Record:
    details = {d.kind: f"call {d.call}: {d.detail}" for d in reversed(verdict.differences)}
    kinds = verdict.kinds()
    return {
        "seed": seed,
        "mode": mode,
        "where": verdict.where,
        "calls": verdict.calls,
        "raised": verdict.raised,
        "seconds": round(seconds, 2),
        "kinds": kinds,
        "details": [details[k][:600] for k in kinds],
        "fallbacks": [f[:200] for f in verdict.fallbacks],
        "waived": [w[:200] for w in verdict.waived],
    }


def crashed(seed: int, mode: str, code: int) -> Record:
    name = signal.Signals(-code).name if code < 0 else f"exit {code}"
    kind = "too slow" if name == "SIGALRM" else f"crash: {name}"
    return {"seed": seed, "mode": mode, "where": "torch", "kinds": [kind], "details": [""]}


# ---------------------------------------------------------------- failures


def failures(records: Sequence[Record]) -> dict[tuple[str, str], list[int]]:
    """The seeds of each kind of difference, by mode."""
    out: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for r in records:
        for kind in r["kinds"]:
            out[kind, r["mode"]].append(r["seed"])
    return dict(sorted(out.items(), key=lambda item: -len(item[1])))


def shrunk(records: Sequence[Record], folder: Path, each: int, seconds: float) -> Iterator[Path]:
    """The smallest forms of `each` programs of every kind, one file each; those that have a file
    are not made again. A process for each: some programs kill theirs."""
    place = folder.resolve() / "failures"
    place.mkdir(parents=True, exist_ok=True)
    prepare(folder.resolve())
    for (kind, mode), seeds in failures(records).items():
        if kind.startswith("hunt:"):
            continue
        slug = re.sub(r"[^a-zA-Z0-9]+", "-", kind)[:60].strip("-")
        for seed in seeds[:each]:
            path = place / f"{slug}-{mode[0]}{seed}.py"
            if not path.exists():
                pid = os.fork()
                if not pid:
                    try:
                        os.chdir(folder)
                        signal.alarm(int(seconds) + LIMIT)
                        path.write_text(smallest(seed, mode, kind, seconds))
                    finally:
                        os._exit(0)
                os.waitpid(pid, 0)
            if path.exists():
                yield path


def smallest(seed: int, mode: str, kind: str, seconds: float) -> str:
    """The text of the smallest program, with its class and seed as its title."""
    program = program_of(seed, mode)
    small = shrink(program, kind, mode == "compiled", seconds)
    title = f"{signature(small, kind)}\n\nseed {seed}, {mode}"
    return str(replace(small, title=title))


def summary(records: Sequence[Record]) -> str:
    """Counts, and the kinds of difference with some of their seeds."""
    lines: list[str] = []
    for mode in MODES:
        mine = [r for r in records if r["mode"] == mode]
        if not mine:
            continue
        where = collections.Counter(r.get("where") for r in mine)
        spent = sum(r.get("seconds", 0) for r in mine)
        different = sum(bool(r["kinds"]) for r in mine)
        waived = sum(bool(r.get("waived")) for r in mine)
        lines.append(
            f"{mode}: {len(mine)} programs, {different} different, {waived} waived; "
            + ", ".join(f"{n} {w}" for w, n in where.most_common())
            + f"; {spent / len(mine):.2f} s each"
        )
    for (kind, mode), seeds in failures(records).items():
        lines.append(f"  {len(seeds):5} {mode[0]} {kind}: seeds {', '.join(map(str, seeds[:6]))}")
    return "\n".join(lines)
