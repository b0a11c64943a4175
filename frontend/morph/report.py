"""What an epoch's trace shows: busy share of each lane, blocked time by cause, a timeline."""

from __future__ import annotations

from pathlib import Path

from .registry import Phase, Resource
from .trace import LANES, Event, Trace

_COLOURS = {Phase.PREPARE: "tab:blue", Phase.MOVE: "tab:orange", Phase.TRAIN: "tab:green"}


def report(trace: Trace, played: Trace | None = None) -> str:
    """A line for each lane and one for each cause of its waiting, most first.

    With the simulator's trace of the schedule, `played`, also how far off its prediction was, as a
    share of what was measured.
    """
    steps = sum(e.phase == Phase.TRAIN for e in trace.events)
    lines = [f"{steps} batches in {trace.seconds:.3f} s, {trace.workers} CPU workers"]
    if played is not None:
        off = played.seconds / trace.seconds - 1 if trace.seconds else 0.0
        lines.append(f"predicted {played.seconds:.3f} s ({off:+.1%})")
    for lane in LANES:
        lines.append(f"{lane:<12} busy {trace.busy(lane):6.1%}")
        causes = sorted(trace.blocked(lane).items(), key=lambda each: -each[1])
        lines += [f"{'':<12} blocked {seconds:.3f} s: {cause}" for cause, seconds in causes]
    return "\n".join(lines)


def draw(trace: Trace, path: Path, *, steps: int = 8) -> None:
    """Draws the lanes from the start to the end of the first `steps` steps.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: `steps` is below one.
        OSError: the file cannot be written.
    """
    if steps < 1:
        raise ValueError(f"steps: at least one is drawn, not {steps}")
    from ..tools.figures import Figure  # needs the commands' modules, which planning does not

    trained = [e for e in trace.on(Resource.ACCELERATOR) if e.phase == Phase.TRAIN]
    end = max((e.end for e in trained[:steps]), default=0.0)
    lanes = [f"CPU {worker}" for worker in range(trace.workers)] + ["link", "accelerator"]
    figure = Figure(panel=(9.0, 1.2 + 0.35 * len(lanes)))
    (axes,) = figure.panels
    labelled: set[Phase] = set()
    for event in trace.events:
        if event.start >= end:
            continue
        for lane in _rows(event, trace.workers):
            label = None if event.phase in labelled else str(event.phase)
            labelled.add(event.phase)
            seconds = event.end - event.start
            colour = _COLOURS[event.phase]
            axes.barh(lane, seconds, left=event.start, color=colour, edgecolor="w", label=label)
            middle = event.start + seconds / 2
            if middle < end:
                style = {"ha": "center", "va": "center", "fontsize": "x-small"}
                axes.text(middle, lane, str(event.batch), **style)
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
    axes.set_xlim(0, end)
    axes.set_xlabel("seconds")
    if labelled:
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.save(path)


def _rows(event: Event, workers: int) -> list[int]:
    """The rows of the picture on which the event lies."""
    rows = {Resource.CPU: event.worker, Resource.LINK: workers, Resource.ACCELERATOR: workers + 1}
    return [rows[lane] for lane in event.resources]
