"""How much memory a piece of work needed, as Linux counts it."""

from __future__ import annotations

import ctypes
import resource
from dataclasses import dataclass
from pathlib import Path


def _status(field: str) -> int:
    """A `kB` field of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(f"/proc/self/status has no {field}")


def resident(process: int) -> int:
    """The resident memory of a process in bytes, 0 where it has ended."""
    try:
        fields = Path(f"/proc/{process}/statm").read_text().split()
    except OSError:
        return 0
    return int(fields[1]) * resource.getpagesize() if fields else 0


def available() -> int:
    """The memory in bytes that processes of this machine may still take without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise KeyError("/proc/meminfo has no MemAvailable")


@dataclass(frozen=True)
class Watermark:
    """The resident memory at one moment; `peak` and `above` tell what happened since."""

    start: int
    exact: bool

    @staticmethod
    def set() -> Watermark:
        """Starts a new peak here, where the kernel lets a process do so.

        Where it does not, `exact` is False, and a peak from before this moment still counts.
        Freed memory is given back first, or the work could use it again without being seen.
        """
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
        if trim is not None:
            trim(0)
        start = _status("VmRSS")
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:  # some containers mount it read-only
            return Watermark(start, False)
        return Watermark(start, True)

    @property
    def peak(self) -> int:
        """The highest resident memory of the process, in bytes."""
        try:
            return _status("VmHWM")
        except KeyError:  # sandboxes leave it out
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    @property
    def above(self) -> int:
        """The peak less the resident memory when the mark was set, in bytes."""
        return max(0, self.peak - self.start)
