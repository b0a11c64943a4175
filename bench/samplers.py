"""Samplers of mini-batches: gnnc's against those of DGL and PyG, on the same seeds."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ..frontend.tools.children import Message
from ..frontend.tools.report import seconds_text, table
from . import batch_options, large_graphs
from .turns import absent_lines, add_threads, turns


@dataclass(frozen=True)
class Sampler:
    """Whose it is; the rule by which nodes are expanded, at `every` hop (DGL's blocks) or `once`
    (PyG), which sample another number of edges; and whether batches are made ahead by as many
    workers as there are threads (threads of gnnc, processes of the others), or one by one."""

    library: str
    rule: str
    workers: bool

    @property
    def base(self) -> str:
        """Our contestant that does the same."""
        return next(
            name
            for name, x in CONTESTANTS.items()
            if (x.library, x.rule, x.workers) == ("gnnc", self.rule, self.workers)
        )


CONTESTANTS = {
    "gnnc": Sampler("gnnc", "every", False),
    "dgl": Sampler("dgl", "every", False),
    "gnnc-workers": Sampler("gnnc", "every", True),
    "dgl-workers": Sampler("dgl", "every", True),
    "gnnc-once": Sampler("gnnc", "once", False),
    "pyg": Sampler("pyg", "once", False),
    "gnnc-once-workers": Sampler("gnnc", "once", True),
    "pyg-workers": Sampler("pyg", "once", True),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    large_graphs.add_sizes(parser, *large_graphs.SIZES)
    names = list(CONTESTANTS)
    parser.add_argument("--contestants", nargs="+", choices=names, default=names)
    batch_options.add_batches(parser)
    parser.add_argument("--batches", type=int, default=40, help="in each turn")
    parser.add_argument("--turns", type=int, default=5, help="of each contestant")
    add_threads(parser)


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """A graph at a time."""
    for nodes, edges in args.sizes:
        shape = {k: getattr(args, k) for k in ("fanouts", "batch_size", "threads", "batches")}
        task = {"nodes": nodes, "edges": edges, **shape}
        chosen = {name: CONTESTANTS[name] for name in args.contestants}
        whose = {name: x.library for name, x in chosen.items()}
        with turns("gnnc.bench.samplers_child", whose, args.threads) as racing:
            racing.prepare({name: {**asdict(x), **task} for name, x in chosen.items()})
            for _ in range(args.turns):
                racing.turn({})
        results = {
            name: {k: statistics.median(a[k] for a in found) for k in found[0]}
            for name, found in racing.answers.items()
        }
        graph = large_graphs.name(nodes, edges)
        yield {"graph": graph, **task, "results": results, "absent": racing.absent}


def report(result: Message, *, markdown: bool = False) -> str:
    """A line a contestant; the ratio is that to gnnc by the same rule and way."""
    rows = [["", "nodes expanded", "a batch", "/ gnnc", "edges", "million edges / s"]]
    results: dict[str, Message] = result["results"]
    for name, found in results.items():
        kind = CONTESTANTS[name]
        base = results.get(kind.base)
        rows.append(
            [
                name,
                "once" if kind.rule == "once" else "at every hop",
                seconds_text(found["seconds"]),
                f"{found['seconds'] / base['seconds']:.2f}" if base else "",
                f"{found['edges']:,.0f}",
                f"{found['edges'] / found['seconds'] / 1e6:.1f}",
            ]
        )
    return "\n".join(
        [
            f"{result['nodes']:,} nodes, {result['edges']:,} edges, "
            f"{batch_options.batches_text(result)}; {result['threads']} threads",
            "",
            table(rows, markdown=markdown),
            *absent_lines(result),
        ]
    )
