"""How much of the time of messages between ranks is hidden behind work: two ranks train, with links
as fast as messages need to take a chosen share of the time of the work."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..frontend.tools.children import Child, Message
from ..frontend.tools.report import seconds_text, table

MODELS = ("sum", "mean", "gcn", "sage", "gin")
"""`sum` and `mean` are a product and three aggregations of its width: all but it can hide messages.
In layers a message hides behind the local edges of its own aggregation alone."""
TURNS = 3
"""Of each link, so that a slow spell of the machine meets all of them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--across", type=float, default=0.1, help="share of edges between ranks")
    parser.add_argument("--chunks", type=int, default=4, help="of the rows of a message")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=32, help="features between layers")
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--latency", type=float, default=1e-4, help="seconds of each message")
    parser.add_argument(
        "--shares", nargs="+", type=float, default=[0.5, 1.0, 2.0], help="of messages, of the work"
    )
    parser.add_argument("--steps", type=int, default=20, help="that are timed in each turn")


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A model at a time."""
    shape = {k: getattr(args, k) for k in ("nodes", "edges", "features", "hidden", "classes")}
    for model in args.models:
        with Child("gnnc.bench.overlap_child") as child:
            child.ask({"model": model, "across": args.across, "chunks": args.chunks, **shape})
            plain = child.ask({"links": [None], "steps": args.steps, "turns": TURNS})
            work = plain["seconds"][0]
            links = [
                [args.latency, _bandwidth(plain, share * work, args.latency)]
                for share in args.shares
            ]
            # the first of these is the plain one again: it meets the same spells of the machine
            timed = child.ask({"links": [None, *links], "steps": args.steps, "turns": TURNS})
        work, *both = timed["seconds"]
        points = [
            _point(plain, work, seconds, latency, bandwidth)
            for seconds, (latency, bandwidth) in zip(both, links, strict=True)
        ]
        yield {"model": model, **shape, "across": args.across, "halo": plain["halo"]} | {
            "chunks": args.chunks,
            "work_seconds": work,
            "points": points,
        }


def _bandwidth(counts: Message, seconds: float, latency: float) -> float:
    """Bytes a second with which the messages of a step take so long, one after the other."""
    return counts["bytes"] / max(seconds - latency * counts["messages"], 1e-6)


def _point(counts: Message, work: float, both: float, latency: float, bandwidth: float) -> Message:
    messages = counts["messages"] * latency + counts["bytes"] / bandwidth
    hidden = (work + messages - both) / min(work, messages)
    return {
        "latency": latency,
        "bandwidth": bandwidth,
        "message_seconds": messages,
        "both_seconds": both,
        "hidden": hidden,
    }


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a link."""
    rows = [["link", "work", "messages", "both", "hidden"]]
    for p in result["points"]:
        rows.append(
            [
                f"{p['latency'] * 1e3:.1f} ms, {p['bandwidth'] / 1e6:,.0f} MB/s",
                seconds_text(result["work_seconds"]),
                seconds_text(p["message_seconds"]),
                seconds_text(p["both_seconds"]),
                f"{p['hidden']:.2f}",
            ]
        )
    title = (
        f"{result['model']}, 2 ranks of one thread, messages in {result['chunks']} chunks: "
        f"{result['nodes']:,} nodes, "
        f"{result['edges']:,} edges, {result['halo']:,} ghosts a rank; {result['features']}, "
        f"{result['hidden']}, {result['classes']} features"
    )
    return f"{title}\n\n{table(rows, markdown=markdown)}"
