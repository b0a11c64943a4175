"""What the kernels of a model would take on a GPU, predicted from the bytes and operations that are
counted in their IR. Nothing is measured, and no GPU is needed.

The model is one line: a kernel takes what its bytes take or what its operations take, whichever is
longer, and its launches. bench/devices.py has the figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..frontend.tools.children import Child, Message
from ..frontend.tools.report import bytes_text, table
from . import devices
from .devices import DEVICES, Device
from .graphs import COMPILED, described, title
from .race import add_task_arguments, chosen_tasks
from .work import Access

MAY_BE_IDLE = "blocks fewer than multiprocessors use as much less of the device"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=tuple(DEVICES), default="h100")
    parser.add_argument("--contestant", choices=COMPILED, default="gnnc")
    add_task_arguments(parser)


def measure(args: argparse.Namespace) -> Iterator[Message]:
    """Counts what each model does on each graph that goes with it."""
    for chosen in chosen_tasks(args):
        task = described(chosen.model, chosen.graph, args.hidden, args.layers)
        asked = {key: task[key] for key in ("model", "hidden", "layers")}
        question = {**asked, "graph": chosen.question, "contestant": args.contestant}
        with Child("gnnc.bench.roofline_child") as child:
            answer = child.ask(question)
        yield {**task, "study": args.device, "contestant": args.contestant, **answer}


@dataclass(frozen=True)
class Prediction:
    """Bytes by where they are read, and the seconds that each cause would take by itself.

    `streamed` lie in order, partial sums among them; `far` are gathered from buffers that the L2
    does not hold, `near` from those that it holds, with what tiles read of matrices.
    """

    streamed: float
    far: float
    near: float
    streamed_seconds: float
    far_seconds: float
    near_seconds: float
    operations_seconds: float
    launch_seconds: float

    @property
    def bytes_seconds(self) -> float:
        return self.streamed_seconds + self.far_seconds + self.near_seconds

    @property
    def seconds(self) -> float:
        return max(self.bytes_seconds, self.operations_seconds) + self.launch_seconds

    def causes(self) -> dict[str, float]:
        """The seconds of the kernel by what they are spent on."""
        if self.operations_seconds > self.bytes_seconds:
            parts = {"operations": self.operations_seconds}
        else:
            parts = {
                "streams": self.streamed_seconds,
                "gathers from memory": self.far_seconds,
                "reads of the L2": self.near_seconds,
            }
        return {**parts, "launches": self.launch_seconds}

    @property
    def limit(self) -> str:
        """What most of the time is spent on."""
        causes = self.causes()
        return max(causes, key=lambda cause: causes[cause])


def predict(kernel: Message, device: Device) -> Prediction:
    """What a kernel (bench/roofline_child.py) would take on a device.

    A gathered buffer that fits into the L2 is read from memory once, and then from there.
    """
    busy = min(1.0, max(kernel["blocks"], 1) / device.multiprocessors)
    copy, near_rate = device.copy * busy, device.near * busy
    streamed, far, near = float(kernel["handed_on"]), 0.0, float(kernel["reread"])
    far_seconds, near_seconds = 0.0, near / (near_rate * devices.NEAR_SHARE)
    for access in (Access(*fields) for fields in kernel["accesses"]):
        if not access.gathered:
            streamed += access.moved
        elif access.whole <= device.gathers_fit:
            near += access.moved
            near_seconds += access.moved / (near_rate * devices.near_share(access.row))
            streamed += min(access.moved, access.whole)
        else:
            far += access.moved
            far_seconds += access.moved / (copy * devices.gather_share(access.row))
    operations = kernel["operations"] / (device.flops * devices.FLOPS_SHARE * busy)
    launches = kernel["launches"] * device.launch
    return Prediction(
        streamed, far, near, streamed / copy, far_seconds, near_seconds, operations, launches
    )


def assumptions(device: Device) -> list[str]:
    """What the figures of a table rest on, a sentence a line."""
    widths = ", ".join(f"{devices.gather_share(n):.0%} ({n} B)" for n in (4, 16, 64, 160, 256))
    near = ", ".join(f"{devices.near_share(n):.0%} ({n} B)" for n in (4, 16, 64, 160, 256))
    return [
        f"PREDICTION for {device.name}: nothing was measured. Assumed:",
        f"- memory copies at {device.copy / 1e12:.2f} TB/s ({devices.COPY_SHARE:.0%} of the data "
        f"sheet), of which gathered rows reach {widths}: lines of {devices.MEMORY_LINE} bytes at "
        f"{devices.GATHER_SHARE:.0%}",
        f"- buffers of up to {bytes_text(device.gathers_fit)} ({devices.FITS_SHARE:.0%} of the "
        f"L2) are gathered from the L2, at {device.near / 1e12:.1f} TB/s by design, of which rows "
        f"reach {near}",
        f"- {device.flops * devices.FLOPS_SHARE / 1e12:.1f} TFLOP/s of float32 "
        f"({devices.FLOPS_SHARE:.0%} of the data sheet, no tensor cores)",
        f"- {device.launch * 1e6:.1f} µs a launch; {MAY_BE_IDLE} ({device.multiprocessors})",
        "- a kernel takes max(bytes / bandwidth, operations / rate) + launches; kernels follow one "
        "another; look-ups of rows that the L2 does not hold as a whole all go to memory; "
        "optimiser and loss count where they are compiled, torch and Python never",
    ]


def micro(seconds: float) -> str:
    """Kernels take microseconds: with a decimal."""
    return f"{seconds * 1e6:,.1f} µs"


HEADING = (
    *("kernel", "launches", "streamed", "gathered", "of the L2", "MFLOP"),
    *("bytes", "operations", "launching", "predicted", "of all", "mostly"),
)


def report(result: Message, *, markdown: bool = False) -> str:
    """The assumptions; a line a kernel, a phase and all of them; then where the time goes."""
    device = DEVICES[result["study"]]
    found = [(k, predict(k, device)) for k in result["kernels"]]
    whole = sum(p.seconds for _, p in found)
    lines: list[tuple[str, ...]] = [HEADING]
    for phase in dict.fromkeys(k["phase"] for k, _ in found):
        own = [(k, p) for k, p in found if k["phase"] == phase]
        lines += [_line(k["kernel"], [(k, p)], whole, p.limit) for k, p in own]
        lines.append(_line(f"all of {phase}", own, whole, ""))
    lines.append(_line("a step", found, whole, ""))
    texts = [f"{result['contestant']}: {title(result)}", "", *assumptions(device), ""]
    texts += [table(lines, markdown=markdown), "", _shares(found, whole, markdown)]
    return "\n".join(texts)


Found = Sequence[tuple[Message, Prediction]]


def _line(name: str, found: Found, whole: float, limit: str) -> tuple[str, ...]:
    def total(value: Callable[[Prediction], float]) -> float:
        return sum(value(p) for _, p in found)

    seconds = total(lambda p: p.seconds)
    return (
        name,
        str(sum(k["launches"] for k, _ in found)),
        bytes_text(total(lambda p: p.streamed)),
        bytes_text(total(lambda p: p.far)),
        bytes_text(total(lambda p: p.near)),
        f"{sum(k['operations'] for k, _ in found) / 1e6:.1f}",
        micro(total(lambda p: p.bytes_seconds)),
        micro(total(lambda p: p.operations_seconds)),
        micro(total(lambda p: p.launch_seconds)),
        micro(seconds),
        f"{seconds / whole:.1%}" if whole else "",
        limit,
    )


def _shares(found: Found, whole: float, markdown: bool) -> str:
    """Where the time goes: by kind of kernel, and by what it is spent on."""
    kinds: dict[str, float] = {}
    causes: dict[str, float] = {}
    for kernel, prediction in found:
        kind = " ".join(kernel["kind"].split("_"))
        kinds[kind] = kinds.get(kind, 0.0) + prediction.seconds
        for cause, seconds in prediction.causes().items():
            causes[cause] = causes.get(cause, 0.0) + seconds
    lines: list[tuple[str, str, str]] = [("where the time goes", "predicted", "of all")]
    for what, parts in (("kernels", kinds), ("spent on", causes)):
        for name, seconds in sorted(parts.items(), key=lambda item: -item[1]):
            share = f"{seconds / whole:.1%}" if whole else ""
            lines.append((f"{what}: {name}", micro(seconds), share))
    return table(lines, markdown=markdown)
