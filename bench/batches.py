"""Steps on small graphs that are new each time: what a new graph costs, what a call costs beyond
its kernels, and both against PyG."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence

from ..frontend.tools.children import ChildFailed, Message
from ..frontend.tools.report import seconds_text, table
from . import batch_options, busy_cores, large_graphs, pooled_graphs
from .turns import Turns, turns

CHILD = "gnnc.bench.batches_child"
SIZES = {"1000x5000": 1.8, "3000x15000": 2.8, "10000x50000": 3.5}
"""Nodes and edges of graphs, and how many times as long as ours a step of PyG should take."""
ASKED = {large_graphs.size(text): ratio for text, ratio in SIZES.items()}
MOST_OF_SAME, MORE = 1.15, 1e-4
"""A step on a new graph should take no more than so many times one on a known graph, and so many
seconds."""
KARATE = {"nodes": 34, "edges": 156}
CALL_SECONDS = 150e-6
"""What a forward and a backward call should take at most, beyond their kernels."""
TRIMMED_RATIO = 2.5
"""How many times as long as ours a step of PyG on sampled batches should take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    large_graphs.add_sizes(parser, *SIZES)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--steps", type=int, default=30, help="in each turn, of each kind")
    parser.add_argument("--turns", type=int, default=5, help="of each contestant")
    parser.add_argument("--studies", nargs="+", choices=tuple(STUDIES), default=list(STUDIES))
    parser.add_argument(
        "--sampled-from",
        type=large_graphs.size,
        default=large_graphs.size(large_graphs.SIZES[0]),
        metavar="NxE",
        help="the graph of which batches are sampled, in the study `trimmed`",
    )
    batch_options.add_batches(parser)


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A study at a time."""
    for name in args.studies:
        yield {"study": name, "steps": args.steps, **STUDIES[name](args)}


def _contest(trimmed: Message | None) -> dict[str, Message]:
    """The first questions."""
    plain = {"profile": False, "trimmed": trimmed}
    return {"gnnc": {"compiled": True, **plain}, "pyg": {"compiled": False, **plain}}


def _asked(racing: Turns, name: str, question: Message) -> Message:
    """The answer. Raises ChildFailed where there is none, as nothing can be said without it, and
    where a compiled model runs in torch: it is not what is to be measured."""
    if (answer := racing.ask(name, question)) is None:
        raise ChildFailed(f"{name}: {racing.absent[name]}")
    if answer["in_torch"]:
        raise ChildFailed(f"{name} runs in torch: {'; '.join(answer['in_torch'])}")
    return answer


def new_graphs(args: argparse.Namespace) -> Message:
    """For each size and number of threads the median steps: on new graphs and on one, and PyG's."""
    kinds = {"new": ("gnnc", True), "same": ("gnnc", False), "pyg": ("pyg", True)}
    cases = [(*size, t) for size in args.sizes for t in args.threads]
    seconds = {(case, kind): list[float]() for case in cases for kind in kinds}
    with turns(CHILD, {"gnnc": "gnnc", "pyg": "pyg"}) as racing:
        racing.prepare(_contest(None))
        for _ in range(args.turns):
            for case in cases:
                shape = dict(zip(("nodes", "edges", "threads"), case, strict=True))
                for kind, (name, new) in kinds.items():
                    question = {**shape, "new": new, "steps": args.steps}
                    seconds[case, kind] += _asked(racing, name, question)["seconds"]
    rows = [
        {
            **{"nodes": nodes, "edges": edges, "threads": threads},
            **{k: statistics.median(seconds[(nodes, edges, threads), k]) for k in kinds},
        }
        for nodes, edges, threads in cases
    ]
    return {"rows": rows}


def calls(args: argparse.Namespace) -> Message:
    """A small graph, called again and again by one thread."""
    whole: list[float] = []
    beyond: list[float] = []
    with turns(CHILD, {"gnnc": "gnnc"}) as racing:
        racing.prepare({"gnnc": {"compiled": True, "profile": True, "trimmed": None}})
        for _ in range(args.turns):
            answer = _asked(racing, "gnnc", {"call": True, "steps": 10 * args.steps, **KARATE})
            whole += answer["seconds"]
            pairs = zip(answer["seconds"], answer["kernels"], strict=True)
            beyond += [all_ - kernels for all_, kernels in pairs]
    return {**KARATE, "call": statistics.median(whole), "beyond": statistics.median(beyond)}


def busy(args: argparse.Namespace) -> Message:
    """Graphs that are called again and again beside one program, and beside one for each thread.
    Means, for what waits for a core does so now and then."""
    most = max(args.threads)
    rows: list[Message] = []
    with turns(CHILD, {"gnnc": "gnnc"}) as racing:
        racing.prepare({"gnnc": {"compiled": True, "profile": False, "trimmed": None}})
        for beside in sorted({1, most}):
            for nodes, edges in args.sizes:
                seconds: dict[str, list[float]] = {"all": [], "one": []}
                for _ in range(args.turns):
                    for name, threads in (("all", most), ("one", 1)):
                        asked = {"threads": threads, "nodes": nodes, "edges": edges}
                        question = {"call": True, "steps": 10 * args.steps, **asked}
                        with busy_cores.busy(beside):
                            seconds[name] += _asked(racing, "gnnc", question)["seconds"]
                means = {name: statistics.mean(found) for name, found in seconds.items()}
                rows.append({"nodes": nodes, "edges": edges, "beside": beside, **means})
    return {"threads": most, "rows": rows}


def trimmed(args: argparse.Namespace) -> Message:
    """Batches as loaders make them, with `trim_to_layer` between layers."""
    nodes, edges = args.sampled_from
    sampled = {"fanouts": args.fanouts, "batch_size": args.batch_size}
    seconds = {(t, name): list[float]() for t in args.threads for name in ("gnnc", "pyg")}
    with turns(CHILD, {"gnnc": "gnnc", "pyg": "pyg"}) as racing:
        racing.prepare(_contest({"nodes": nodes, "edges": edges, **sampled}))
        for _ in range(args.turns):
            for (threads, name), found in seconds.items():
                question = {"threads": threads, "steps": args.steps}
                found += _asked(racing, name, question)["seconds"]
    rows = [
        {"threads": t, **{n: statistics.median(seconds[t, n]) for n in ("gnnc", "pyg")}}
        for t in args.threads
    ]
    return {"nodes": nodes, "edges": edges, **sampled, "rows": rows}


def pooled(args: argparse.Namespace) -> Message:
    """Batches of small graphs."""
    return pooled_graphs.measure(args.threads, args.steps, args.turns, _asked)


STUDIES: dict[str, Callable[[argparse.Namespace], Message]] = {
    "new graphs": new_graphs,
    "calls": calls,
    "busy": busy,
    "trimmed": trimmed,
    "pooled": pooled,
}


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a size and number of threads, with the figures that are asked for."""
    title, rows = _TABLES[result["study"]](result)
    return f"{title}\n\n{table(rows, markdown=markdown)}"


def missed(result: Message) -> list[str]:
    """The figures that are asked for and not reached."""
    match result["study"]:
        case "calls":
            return ["beyond kernels"] if result["beyond"] > CALL_SECONDS else []
        case "busy":
            return busy_cores.missed(result)
        case "trimmed":
            ratios = [r["pyg"] / r["gnnc"] for r in result["rows"]]
            return [f"pyg / gnnc {x:.2f}" for x in ratios if x < TRIMMED_RATIO]
        case "pooled":
            return []  # nothing is asked for
        case _:
            return [text for row in result["rows"] for text in _missed_by(row)]


def _missed_by(row: Message) -> list[str]:
    ratio = row["pyg"] / row["new"]
    asked = ASKED.get((row["nodes"], row["edges"]), 0)
    found = [] if ratio >= asked else [f"pyg / gnnc {ratio:.2f}"]
    return found if row["new"] <= _most(row) else [*found, "new"]


def _most(row: Message) -> float:
    return MOST_OF_SAME * row["same"] + MORE


def failed(results: Sequence[Message]) -> bool:
    """Whether a figure that is asked for is not reached."""
    return any(map(missed, results))


def _of_new_graphs(result: Message) -> tuple[str, list[list[str]]]:
    rows = [["nodes, edges", "threads", "new graph", "at most", "same", "pyg", "/ gnnc", "asked"]]
    for row in result["rows"]:
        asked = ASKED.get((row["nodes"], row["edges"]))
        rows.append(
            [
                f"{row['nodes']:,}, {row['edges']:,}",
                str(row["threads"]),
                seconds_text(row["new"]),
                seconds_text(_most(row)),
                seconds_text(row["same"]),
                seconds_text(row["pyg"]),
                f"{row['pyg'] / row['new']:.2f}",
                "" if asked is None else f"{asked}",
            ]
        )
    return "GraphSAGE, 2 layers, 64, 64, 16, a step on a new graph each time", rows


def _of_calls(result: Message) -> tuple[str, list[list[str]]]:
    rows = [["", "seconds", "at most"], ["whole", seconds_text(result["call"]), ""]]
    rows.append(["beyond kernels", seconds_text(result["beyond"]), seconds_text(CALL_SECONDS)])
    title = "GraphSAGE, 2 layers, forward and backward without a loss, 1 thread: "
    return f"{title}{result['nodes']} nodes, {result['edges']} edges", rows


def _of_trimmed(result: Message) -> tuple[str, list[list[str]]]:
    rows = [["threads", "gnnc", "pyg", "/ gnnc", "asked"]]
    for row in result["rows"]:
        times = [seconds_text(row[name]) for name in ("gnnc", "pyg")]
        rows.append(
            [str(row["threads"]), *times, f"{row['pyg'] / row['gnnc']:.2f}", f"{TRIMMED_RATIO}"]
        )
    title = (
        f"GraphSAGE, {len(result['fanouts'])} layers with trim_to_layer, a step on a batch of "
        f"{result['nodes']:,} nodes, {result['edges']:,} edges: "
        f"{batch_options.batches_text(result)}"
    )
    return title, rows


_TABLES = {
    "new graphs": _of_new_graphs,
    "calls": _of_calls,
    "busy": busy_cores.table_of,
    "trimmed": _of_trimmed,
    "pooled": pooled_graphs.table_of,
}
