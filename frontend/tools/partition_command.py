"""`gnnc partition`: cuts a graph into parts, one a rank, compares ways to, and writes the best."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...runtime.partition import assign, edges, files, measure, types
from . import figures, partition_figure
from .children import Refused
from .report import add_json, check_place, seconds_text, table, write_json


def add_cutting(parser: argparse.ArgumentParser) -> None:
    """Where a graph is read from, and how it is cut."""
    parser.add_argument("--root", default="data", help="the folder that data sets are read from")
    parser.add_argument(
        "--method",
        nargs="+",
        choices=("auto", "all", *assign.METHODS),
        default=["auto"],
        help="what to try; the best is taken. auto: METIS in three ways, and whole components, or "
        "what there is without METIS",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "graph",
        help="a .npy file of 2 x edges integers (sources, destinations), which need not fit in "
        "memory for --method stream; or, as gnnc.load takes them, a folder of .npy files or a .npz "
        "file with edge_index, a class of torch_geometric.datasets with its name, or default; or a "
        "folder with such a file SOURCE__NAME__TARGET.npy for each type of edges, of ends that are "
        "numbered by type",
    )
    parser.add_argument(
        "--nodes",
        nargs="+",
        type=_count_of_type,
        metavar="TYPE=N",
        help="how many nodes there are of a type; by default as many as the ends of edges tell",
    )
    parser.add_argument("-n", "--parts", type=int, required=True, help="how many parts to make")
    add_cutting(parser)
    parser.add_argument(
        "--limit",
        type=float,
        default=assign.LIMIT,
        help="the greatest work of a part over the mean that is as good as none",
    )
    parser.add_argument(
        "--row-cost",
        type=int,
        default=measure.ROW_COST,
        help="the work of a node, where that of an edge is 1",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out", metavar="FOLDER", help="write the parts there, for gnnc.PartitionFolder"
    )
    parser.add_argument(
        "--picture",
        metavar="FILE",
        help="draw what each part has to do and to receive (.svg, .png, ..; needs matplotlib)",
    )
    add_json(parser)


def _count_of_type(text: str) -> tuple[str, int]:
    name, _, count = text.rpartition("=")
    if not name or not count.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not TYPE=N, a type and its nodes")
    return name, int(count)


def run(args: argparse.Namespace) -> int:
    """Cuts, writes, prints the table or the JSON, draws, and returns the exit status."""
    try:
        if args.json not in (None, "-"):
            check_place("--json", Path(args.json))
        if args.picture is not None:
            figures.check("--picture", Path(args.picture))
        if args.out is not None and Path(args.out).exists() and not Path(args.out).is_dir():
            raise Refused(f"--out: {args.out} is a file, not a folder")
        graph, of_types = read_typed(args.graph, args.root, dict(args.nodes or ()))
        task = assign.Task(graph, args.parts, args.limit, args.row_cost, args.seed)
        found = assign.partition(task, chosen_methods(args.method))
        if args.out is not None:
            files.save(Path(args.out), args.parts, found.owner, graph, of_types)
    except (Refused, OSError, ValueError, TypeError) as error:
        print(f"gnnc partition: {error}", file=sys.stderr)
        return 1
    if args.json is not None:
        write_json(args.json, results(found))
    if args.json != "-":
        print(report(found))
    if args.picture is not None:
        partition_figure.draw(found, Path(args.picture))
    return 0


def chosen_methods(chosen: list[str]) -> list[str] | None:
    """The methods that `--method` names; None for those that are tried by themselves."""
    if "all" in chosen:
        return list(assign.METHODS)
    return None if "auto" in chosen else chosen


def read_typed(
    place: str, root: str, nodes: Mapping[str, int]
) -> tuple[edges.Edges, types.Types | None]:
    """The edges of a graph, and its types where it has some; `nodes` says how many there are of a
    type.

    Raises:
        OSError, ValueError, TypeError: as `read` does, or as `types.in_files` does.
    """
    folder = Path(place).expanduser()
    if folder.is_dir() and (found := types.files_of_types(folder)):
        return types.in_files(found, nodes)
    if nodes:
        raise ValueError(f"--nodes: {place} has no files SOURCE__NAME__TARGET.npy")
    return read(place, root), None


def read(place: str, root: str) -> edges.Edges:
    """The edges of a graph without types.

    Raises:
        OSError: a file or folder that is not there.
        ValueError: no graph is there.
        TypeError: its ends are no integers.
    """
    path = Path(place).expanduser()
    if path.suffix == ".npy":
        return edges.in_file(path)
    from ..torch.training.data import load

    data = load(place, root)
    try:
        index = data.edge_index.numpy()
    except AttributeError as error:
        raise ValueError(f"{place}: {error}") from error
    if index.ndim != 2 or len(index) != 2:
        raise ValueError(f"{place}: edge_index is {list(index.shape)}, not 2 x edges")
    return edges.in_memory(index[0], index[1], data.num_nodes)


def results(found: assign.Partition) -> Mapping[str, Any]:
    """The measures of all that was tried, as plain data."""
    methods: list[Mapping[str, Any]] = []
    for candidate in found.candidates:
        measures = candidate.measures
        if measures is None:
            methods.append({"method": candidate.method, "why_not": candidate.why_not})
            continue
        methods.append(
            {
                "method": candidate.method,
                "imbalance": measures.imbalance,
                "halo_rows": measures.volume,
                "cut_edges": measures.cut,
                "seconds": candidate.seconds,
            }
        )
    chosen = {
        "method": found.method,
        "work": found.measures.work.tolist(),
        "rows": found.measures.rows.tolist(),
    }
    return {"methods": methods, "chosen": chosen}


def report(found: assign.Partition) -> str:
    """A line a method, and one a part of the method that was taken."""
    lines = [["method", "imbalance", "halo rows", "cut edges", "time"]]
    left_out: list[str] = []
    for candidate in found.candidates:
        measures = candidate.measures
        if measures is None:
            left_out.append(f"{candidate.method}: not tried, {candidate.why_not}")
            continue
        mark = " (taken)" if candidate.method == found.method else ""
        lines.append(
            [
                candidate.method + mark,
                f"{measures.imbalance:.3f}",
                f"{measures.volume:,}",
                f"{measures.cut:,}",
                seconds_text(candidate.seconds),
            ]
        )
    chosen = found.measures
    ranks = [["part", "nodes", "work", "rows received", "rows sent", "peers"]]
    for part in range(len(chosen.work)):
        nodes = int((found.owner == part).sum())
        sent, halo = int(chosen.rows[:, part].sum()), int(chosen.halo[part])
        numbers = (nodes, int(chosen.work[part]), halo, sent, int(chosen.peers[part]))
        ranks.append([str(part), *(f"{n:,}" for n in numbers)])
    return "\n".join([table(lines), *left_out, "", table(ranks)])
