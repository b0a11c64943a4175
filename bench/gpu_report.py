"""What bench/gpu.py writes beside its results: a document with the tables, and a picture."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ..frontend.tools.children import Message
from ..frontend.tools.report import table
from . import gpu_plan, race, race_figure
from .roofline import micro

TITLE = "# gnnc on a GPU"


def document(results: Message) -> str:
    """All that is there, in Markdown; then what failed and what is missing."""
    done: Message = results["parts"]
    found = {name: part["result"] for name, part in done.items() if "result" in part}
    texts = [TITLE, _device(found)]
    texts += [text for text in (_checks(found), _sanitizers(found)) if text]
    rate = found["copy"]["bytes_a_second"] if "copy" in found else None
    if rate is not None:
        texts.append(f"Copy bandwidth, measured: {rate / 1e9:,.0f} GB/s.")
    texts += [_epochs(name, found, rate) for name in found if name.startswith("epochs-")]
    texts += [_aggregation(found[n], rate) for n in found if n.startswith("aggregation-")]
    texts += list(_missing(done))
    return "\n\n".join(texts)


def _device(found: Message) -> str:
    if "device" not in found:
        return "The device is not told."
    facts = found["device"]
    versions = ", ".join(f"{n} {v}" for n, v in facts["versions"].items() if v is not None)
    parts = [facts["device"]]
    if "capability" in facts:
        parts += [f"compute capability {facts['capability']}", f"CUDA {facts['cuda']}"]
    return "; ".join([*parts, versions])


def _checks(found: Message) -> str:
    """A line a model that was compared with PyG."""
    checks = [found[name] for name in found if name.startswith("check-")]
    if not checks:
        return ""
    lines: list[tuple[str, ...]] = [("model", "numbers", "largest difference", "of", "is")]
    for one in checks:
        verdict = "good" if one["good"] else "WRONG" if not one["close"] else "not compiled"
        lines.append(
            (
                one["model"],
                f"{one['numbers']:,}",
                f"{one['difference']:.1e}",
                one["worst"],
                verdict,
            )
        )
    notes = [f"{c['model']} runs in torch: {text}" for c in checks for text in c["in_torch"]]
    head = (
        "Values and gradients against PyG on the same device; differences are of the largest "
        "number of a tensor, or a hundredth of the largest of all, and may be "
        f"{checks[0]['tolerance']:.0e}."
    )
    return "\n\n".join(["## Checks", head, table(lines, markdown=True), *notes])


def _sanitizers(found: Message) -> str:
    lines: list[str] = []
    for tool in gpu_plan.TOOLS:
        if (one := found.get(tool)) is None:
            continue
        if "absent" in one:
            lines.append(f"{tool} was not run: {one['absent']}.")
            continue
        summary = "; ".join(one["summary"]) or "no summary"
        verdict = "nothing found" if one["good"] else "ERRORS"
        lines.append(f"{tool} on {', '.join(one['models'])}: {verdict} ({summary})")
        lines += [f"```\n{text}\n```" for text in ["\n".join(one["output"])] if text]
    return "\n\n".join(lines)


def _epochs(name: str, found: Message, rate: float | None) -> str:
    """The table of a race, and how its time compares with the bytes that gnnc's kernels move."""
    one: Message = found[name]
    texts = [f"## {one['model']} on {one['graph']}", race.report(one, markdown=True)]
    counted = found.get(name.replace("epochs-", "count-"))
    ours = one["results"].get("gnnc", {}).get("median_seconds")
    if counted is not None:
        predicted = ", ".join(f"{d} {micro(s)}" for d, s in counted["predicted"].items())
        text = (
            f"gnnc's kernels move {counted['moved'] / 1e6:,.0f} MB a step; predicted: {predicted}."
        )
        if ours is not None and rate is not None:
            share = counted["moved"] / ours / rate
            text += f" At the median that is {share:.0%} of the copy bandwidth."
        texts.append(text)
    return "\n\n".join(texts)


def _aggregation(one: Message, rate: float | None) -> str:
    """A line a width and contestant."""
    heading = ("numbers a row", "contestant", "median", "GB/s", "of copies", "difference")
    lines: list[tuple[str, ...]] = [heading]
    for width in one["widths"]:
        for name, seconds in width["seconds"].items():
            moved = width["moved"] / seconds
            share = f"{moved / rate:.0%}" if rate is not None else ""
            apart = f"{width['differences'][name]:.1e}"
            lines.append(
                (str(width["width"]), name, micro(seconds), f"{moved / 1e9:,.0f}", share, apart)
            )
    head = (
        f"Sums over neighbours, forward: {one['nodes']:,} nodes, {one['edges']:,} edges. Bytes "
        "count each look-up, also where a cache has the row. torch.sparse.mm is cuSPARSE on a GPU, "
        "with a CSR matrix that is made once."
    )
    return "\n\n".join(["## Aggregation alone", head, table(lines, markdown=True)])


def _missing(done: Message) -> Iterator[str]:
    errors = [(name, part["error"]) for name, part in done.items() if "error" in part]
    if errors:
        yield "## Failed"
        yield "\n".join(f"- {name}: {error.replace(chr(10), '; ')}" for name, error in errors)
    missing = [part.name for part in gpu_plan.parts() if part.name not in done]
    if missing:
        yield f"Not run: {', '.join(missing)}."


def draw(results: Message, path: Path) -> None:
    """Draws the epochs, a panel a model; nothing where there are none, and without matplotlib."""
    done: Message = results["parts"]
    races = [p["result"] for n, p in done.items() if n.startswith("epochs-") and "result" in p]
    if not races:
        return
    try:
        race_figure.draw(races, path)
    except ImportError as error:
        print(f"no picture: {error}", file=sys.stderr)
