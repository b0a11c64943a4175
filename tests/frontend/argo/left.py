"""What processes leave behind."""

from __future__ import annotations

from pathlib import Path


def shared_memory(pids: list[int]) -> list[str]:
    """What torch has made in these processes, and left under a name."""
    starts = tuple(f"torch_{pid}_" for pid in pids)
    return [f.name for f in Path("/dev/shm").iterdir() if f.name.startswith(starts)]


def alive(pids: list[int]) -> list[int]:
    return [p for p in pids if Path(f"/proc/{p}").exists()]
