"""A folder of results: one JSON file that every part of `gnnc bench` adds to, and its tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..frontend.tools.children import Message
from ..frontend.tools.report import write_json
from .machine import machine_text

if TYPE_CHECKING:
    from .command import Part

JSON_FILE = "results.json"
MARKDOWN_FILE = "README.md"

_IDENTITY = ("study", "contestant", "model", "graph", "layers", "hidden", "features", "inference")


def record(
    folder: Path, part: Part, parts: Sequence[Part], results: Sequence[Message], machine: Message
) -> None:
    """Adds the results of one part, in the place of earlier ones of the same task, and writes both
    files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / JSON_FILE
    data: Message = json.loads(path.read_text()) if path.is_file() else {}
    entries: list[Message] = data.get(part.key, [])
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    for result in results:
        entry: Message = {"date": now, "machine": machine, "result": result}
        if part.plot is not None and (figure := part.plot(result, folder)) is not None:
            entry["figure"] = figure
        same = [i for i, e in enumerate(entries) if _identity(e["result"]) == _identity(result)]
        if same:
            entries[same[0]] = entry
        else:
            entries.append(entry)
    data[part.key] = entries
    write_json(str(path), data)
    (folder / MARKDOWN_FILE).write_text(render(data, parts))


def _identity(result: Message) -> list[Any]:
    """What a later result must have in common to replace this one."""
    return [result.get(name) for name in _IDENTITY]


def render(data: Message, parts: Sequence[Part]) -> str:
    """The document of all that is recorded: the machines, then a section for each part."""
    entries = [entry for part in parts for entry in data.get(part.key, ())]
    machines = list(dict.fromkeys(machine_text(e["machine"]) for e in entries))
    lines = [
        "# Results",
        "",
        f"Written by `gnnc bench --record`, from [{JSON_FILE}]({JSON_FILE}); docs/benchmarks.md "
        "says what the columns mean.",
        "",
        *(f"{i}. {text}" for i, text in enumerate(machines, 1)),
    ]
    for part in parts:
        if found := data.get(part.key):
            lines += ["", f"## {part.heading}"]
        else:
            continue
        for entry in found:
            lines += ["", part.report(entry["result"], markdown=True)]
            if "figure" in entry:
                lines += ["", f"![{part.heading}]({entry['figure']})"]
            place = machines.index(machine_text(entry["machine"])) + 1
            lines += ["", f"{entry['date']}, on machine {place}"]
    return "\n".join(lines) + "\n"
