"""Contestants in processes of their own, taking turns; medians, ratios, memory, new graphs."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ..frontend.tools.children import Child, ChildFailed, Message, OutOfMemory, Refused
from ..frontend.tools.memory import available
from ..frontend.tools.report import bytes_text, seconds_text, table
from ..runtime.cpu.heap import PLAIN_TORCH
from . import real
from .graphs import COMPILED, GRAPHS, MODELS, described, tasks, title

CONTESTANTS = ("gnnc", "gnnc-step", "gnnc-train", "pyg", "pyg-sparse", "pyg-fast", "dgl", "floor")
NEW_GRAPHS = 3
"""On how many unseen graphs the cost of building structure is measured."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_task_arguments(parser)
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    add_race_arguments(parser)


def add_task_arguments(parser: argparse.ArgumentParser) -> None:
    """Of every command that measures models on graphs."""
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument(
        "--graphs",
        nargs="+",
        choices=tuple(GRAPHS),
        default=None,
        help="each model runs on those of its kind (None: arxiv-like, fb15k-like)",
    )
    real.add_argument(parser)
    add_size_arguments(parser)


def add_size_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hidden", type=int, default=None, help="features between layers (None: as usual)"
    )
    parser.add_argument("--layers", type=int, default=None, help="(None: as usual for the model)")


def add_race_arguments(parser: argparse.ArgumentParser) -> None:
    """Of every command that runs `race`."""
    parser.add_argument("--rounds", type=int, default=5, help="turns that each contestant has")
    parser.add_argument("--epochs", type=int, default=2, help="epochs in each turn")
    parser.add_argument(
        "--memory",
        type=float,
        metavar="GIB",
        default=None,
        help="resident memory past which a contestant is out (None: 3/4 of what is available)",
    )
    parser.add_argument(
        "--inference",
        action="store_true",
        help="an epoch is a prediction and its loss, without gradients",
    )


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A race for every model on every graph that goes with it."""
    for task in chosen_tasks(args):
        reasons = {n: lacks(n, task.model, args.inference) for n in args.contestants}
        absent = {name: why for name, why in reasons.items() if why is not None}
        entries = {n: {"contestant": n} for n in args.contestants if n not in absent}
        yield {**race(args, task, entries), "absent": absent}


@dataclass(frozen=True)
class Chosen:
    """A model and a graph by name, and the graph as children are asked for it."""

    model: str
    graph: str
    question: Any


def chosen_tasks(args: argparse.Namespace) -> Generator[Chosen]:
    """All that is to be measured. Real data is read once for all models of a graph, and is there
    until the next task is taken.

    Raises:
        Refused: what does not go together, or real data that is not there.
    """
    chosen = list(tasks(args.models, args.graphs))
    for graph in dict.fromkeys(graph for graph, _ in chosen):
        real.check(graph, args.data)
    for graph, group in groupby(chosen, lambda names: names[0]):
        with real.prepared(graph, args.data) as file:
            for _, model in group:
                yield Chosen(model, graph, GRAPHS[graph].question(file))


def lacks(contestant: str, model: str, inference: bool = False) -> str | None:
    """Why there is no such model of a contestant; None where there is one."""
    match contestant:
        case "gnnc-train" | "floor" if inference:
            return "it trains"
        case "floor" if model not in ("gcn", "sage", "gin", "gat", "rgcn"):
            return "GCN, GraphSAGE, GIN, GAT and RGCN alone"
        case "pyg-sparse" if model not in ("gcn", "sage", "gin"):
            return "GCN, GraphSAGE and GIN alone"
        case "pyg-fast" if model != "rgcn":
            return "RGCN alone"
        case "dgl" if model == "rgat":
            return "no RGAT layer"
        case _:
            return None


def failed(races: Sequence[Message]) -> bool:
    """Whether a contestant failed for another reason than memory."""
    results = [r for one in races for r in one["results"].values()]
    return any("error" in r and not r["out_of_memory"] for r in results)


def race(
    args: argparse.Namespace,
    chosen: Chosen,
    entries: Mapping[str, Message],
    new_graphs: int = NEW_GRAPHS,
) -> Message:
    """Median epoch of every entry on one model and graph.

    An entry says what its child is asked besides the task. All are prepared first and then have
    `rounds` turns in rotation, so that what else the machine does falls on all of them. One that
    fails is left out of the rest, with the reason. Last, each trains on `new_graphs` unseen graphs.
    """
    task = described(chosen.model, chosen.graph, args.hidden, args.layers)
    if args.inference:
        task["inference"] = True
    asked = {key: task[key] for key in ("model", "hidden", "layers", "inference") if key in task}
    limit = int(args.memory * 2**30) if args.memory else available() * 3 // 4
    results: dict[str, Message] = {name: {} for name in entries}
    children: dict[str, Child] = {}
    with ExitStack() as stack:

        def ask(name: str, question: Message) -> None:
            try:
                _add(results[name], children[name].ask(question))
            except (ChildFailed, Refused) as error:
                children.pop(name).end()
                results[name] = {
                    "error": str(error),
                    "out_of_memory": isinstance(error, OutOfMemory),
                }
                print(f"{name} is out: {error}", file=sys.stderr)

        for name, entry in entries.items():
            child = Child(
                "gnnc.bench.contestant",
                memory_limit=limit,
                environment=None if entry["contestant"] in COMPILED else PLAIN_TORCH,
            )
            children[name] = stack.enter_context(child)
            ask(name, {**asked, "graph": chosen.question, **entry})
        for _ in range(args.rounds):
            for name in list(children):
                ask(name, {"epochs": args.epochs})
        for name in list(children):
            ask(name, {"graphs": new_graphs})
    for name in children:
        result = results[name]
        result["median_seconds"] = statistics.median(result["seconds"])
        if firsts := result["new_graph_seconds"]:  # what an unseen graph costs above an epoch
            result["structure_seconds"] = statistics.median(firsts) - result["median_seconds"]
    return {**task, "memory_limit": limit, "results": results}


def _add(result: Message, answer: Message) -> None:
    """Takes an answer into a contestant's result; the first is that of its warm-up."""
    if "new_graph_seconds" in answer:
        result |= answer
        return
    if "seconds" not in result:
        result |= {"first_seconds": answer["seconds"][0], "seconds": []}
        result |= {"loss": answer["losses"][0], "in_torch": answer.get("in_torch", [])}
        result |= {key: answer[key] for key in ("buffers", "live", "bound") if key in answer}
    else:
        result["seconds"] += answer["seconds"]
    for key in ("memory", "process_memory", "memory_exact"):
        result[key] = answer[key]


HEADING = (
    *("", "epoch, median", "fastest", "/ gnnc", "first", "new graph"),
    *("memory", "/ gnnc", "buffers", "live / bound", "loss"),
)


def report(race: Message, *, markdown: bool = False, base: str = "gnnc") -> str:
    """One table: a line a contestant; times and memory also as multiples of those of `base`."""
    ours = race["results"].get(base, {})
    rows: list[tuple[str, ...]] = [tuple(h.replace("gnnc", base) for h in HEADING)]
    for name, result in race["results"].items():
        if "error" in result:
            what = "out of memory" if result["out_of_memory"] else "failed"
            rows.append((name, what, *[""] * (len(HEADING) - 2)))
            continue
        rows.append(
            (
                name,
                seconds_text(result["median_seconds"]),
                seconds_text(min(result["seconds"])),
                _ratio(result, ours, "median_seconds"),
                seconds_text(result["first_seconds"]),
                _structure(result),
                bytes_text(result["memory"]),
                _ratio(result, ours, "memory"),
                bytes_text(result["buffers"]) if "buffers" in result else "",
                f"{result['live'] / result['bound']:.2f}" if result.get("bound") else "",
                f"{result['loss']:.5f}",
            )
        )
    filled = [i for i in range(len(HEADING)) if any(row[i] for row in rows[1:])]
    shown = [[row[i] for i in filled] for row in rows]
    return "\n".join([title(race), "", table(shown, markdown=markdown), *_notes(race)])


def _structure(result: Message) -> str:
    """What a graph costs once, in seconds and in epochs."""
    if (seconds := result.get("structure_seconds")) is None:
        return ""
    return f"{seconds_text(seconds)} ({seconds / result['median_seconds']:.1f} epochs)"


def _notes(race: Message) -> list[str]:
    """What a reader of the numbers must know; DGL is not compared, for it initialises otherwise."""
    results: dict[str, Message] = race["results"]
    texts = ["", "first: with compilation, or loading"]
    if any("structure_seconds" in r for r in results.values()):
        texts[-1] += "; new graph: structure building, once a graph"
    losses = {n: r["loss"] for n, r in results.items() if n != "dgl" and "loss" in r}
    if losses and max(losses.values()) > 1.001 * min(losses.values()):
        texts.append(
            f"WARNING: the first losses differ, so something is computed wrongly: {losses}"
        )
    if not all(r.get("memory_exact", True) for r in results.values()):
        texts.append("This kernel does not reset memory peaks: preparation may be in them.")
    for name, result in results.items():
        if "error" in result:
            lines = result["error"].splitlines()
            texts.append(f"{name}: {lines[0] if lines else 'no message'}")
        for part in result.get("in_torch", ()):
            texts.append(f"{name} runs in torch: {part}")
    absent: dict[str, str] = race.get("absent", {})
    if absent:
        reasons = ", ".join(f"{name} ({why})" for name, why in absent.items())
        texts.append(f"No such model of {reasons}.")
    if any(r.get("out_of_memory") for r in results.values()):
        texts.append(f"Each contestant may take {race['memory_limit'] / 2**30:.1f} GiB.")
    return texts


def _ratio(result: Message, ours: Message, name: str) -> str:
    return f"{result[name] / ours[name]:.2f}" if ours.get(name) else ""
