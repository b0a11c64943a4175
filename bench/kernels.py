"""Each kernel of a compiled model: its time in the running program, and how far it is from what the
machine could do."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from ..frontend.tools.children import Child, Message
from ..frontend.tools.report import bytes_text, seconds_text, table
from . import ceilings, real
from .ceilings import Ceilings
from .graphs import COMPILED, GRAPHS, MODELS, described, tasks, title
from .race import add_size_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", choices=tuple(MODELS), default="gcn")
    parser.add_argument(
        "--graph", choices=tuple(GRAPHS), default=None, help="(None: arxiv-like or fb15k-like)"
    )
    real.add_argument(parser)
    parser.add_argument("--contestant", choices=COMPILED, default="gnnc")
    add_size_arguments(parser)
    parser.add_argument("--epochs", type=int, default=20)


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """Trains one profiled model, and measures the machine's ceilings before and after: what else
    the machine does is in both, and the higher ones count."""
    ((graph, model),) = tasks([args.model], args.graph and [args.graph])
    task = described(model, graph, args.hidden, args.layers)
    asked = {key: task[key] for key in ("model", "hidden", "layers")}
    with real.prepared(graph, args.data) as file, Child("gnnc.bench.profiled") as child:
        asked["graph"] = GRAPHS[graph].question(file)
        answer = child.ask({"contestant": args.contestant, **asked})
        before = ceilings.measure(answer["threads"])
        answer |= child.ask({"epochs": args.epochs})
        found = before.higher(ceilings.measure(answer["threads"]))
    kernels = answer["kernels"]
    for kernel, laps in zip(kernels, answer["laps"], strict=True):
        kernel["seconds"] = statistics.median(laps)
    epoch = statistics.median(answer["seconds"])
    task["contestant"] = args.contestant
    yield {**task, "kernels": kernels, "epoch_seconds": epoch, "ceilings": found.data()}


@dataclass(frozen=True)
class Share:
    """How a kernel's time compares with the least that its bytes or its operations would take."""

    of_memory: float
    of_arithmetic: float
    of_least: float
    """The same as `added`, where rows that lie anywhere are read at the rate of such rows, and
    exponentials and their kind take the time that these take."""

    @property
    def nearer(self) -> float:
        return max(self.of_memory, self.of_arithmetic)

    @property
    def added(self) -> float:
        """As of a kernel that does one after the other."""
        return self.of_memory + self.of_arithmetic

    @property
    def limit(self) -> str:
        return "memory" if self.of_memory >= self.of_arithmetic else "arithmetic"


def share(kernel: Message, found: Ceilings) -> Share:
    """The bandwidth that counts is that of the kernel's working set."""
    seconds = max(kernel["seconds"], 1e-9)
    return Share(
        kernel["moved"] / seconds / found.bandwidth(kernel["touched"]),
        kernel["operations"] / seconds / found.flops,
        least(kernel, found) / seconds,
    )


def least(kernel: Message, found: Ceilings) -> float:
    """The seconds that a kernel takes at least, one after the other."""
    gathers = kernel.get("gathers", ())
    in_order = kernel["moved"] - sum(moved for moved, _, _ in gathers)
    functions = kernel.get("functions", 0) / found.exps if found.exps else 0.0
    return (
        in_order / found.bandwidth(kernel["touched"])
        + sum(moved / found.gathered(row, whole) for moved, row, whole in gathers)
        + kernel["operations"] / found.flops
        + functions
    )


HEADING = (
    *("kernel", "time", "of epoch", "moved", "GB/s", "GFLOP/s"),
    *("working set", "nearer ceiling", "share of it", "of both", "of least"),
)


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a kernel, then all of them together, then what of an epoch is in no kernel."""
    found = Ceilings.of(result["ceilings"])
    epoch = result["epoch_seconds"]
    rows: list[tuple[str, ...]] = [HEADING]
    inside, nearer, added, all_least = 0.0, 0.0, 0.0, 0.0
    for kernel in result["kernels"]:
        part = share(kernel, found)
        inside += kernel["seconds"]
        nearer += kernel["seconds"] * part.nearer
        added += kernel["seconds"] * part.added
        all_least += kernel["seconds"] * part.of_least
        rows.append(
            (
                kernel["kernel"],
                seconds_text(kernel["seconds"]),
                f"{kernel['seconds'] / epoch:.1%}",
                bytes_text(kernel["moved"]),
                f"{kernel['moved'] / kernel['seconds'] / 1e9:.1f}",
                f"{kernel['operations'] / kernel['seconds'] / 1e9:.1f}",
                bytes_text(kernel["touched"]),
                part.limit,
                f"{part.nearer:.0%}",
                f"{part.added:.0%}",
                f"{part.of_least:.0%}",
            )
        )
    blank = [""] * 5
    rows.append(
        (
            *("all kernels", seconds_text(inside), f"{inside / epoch:.1%}", *blank),
            f"{nearer / inside:.0%}",
            f"{added / inside:.0%}",
            f"{all_least / inside:.0%}",
        )
    )
    rest = epoch - inside
    rows.append(("elsewhere", seconds_text(rest), f"{rest / epoch:.1%}", *blank, "", "", ""))
    fastest = max(rate for _, rate in found.read) / 1e9
    slowest = min(rate for _, rate in found.read) / 1e9
    notes = (
        f"An epoch takes {seconds_text(epoch)}; elsewhere: optimiser, torch, Python, and the loss "
        "where it is not compiled.",
        f"Ceilings, in the same minutes: {found.flops / 1e9:.0f} GFLOP/s; reads of "
        f"{fastest:.0f} to {slowest:.0f} GB/s, by the working set. Of both: the two shares added, "
        "as if nothing overlapped. Of least: the same, with looked-up rows at the rate of rows "
        "that lie anywhere, and exponentials at theirs. Shares above 100% come from caches: rows "
        "are counted as moved each time they are looked up.",
    )
    return "\n".join(
        [f"{result['contestant']}: {title(result)}", "", table(rows, markdown=markdown), "", *notes]
    )
