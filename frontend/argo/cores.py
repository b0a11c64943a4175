"""Which cores this process may use, how many of them at once, and who gets which.

A mask does not show a quota of time (cgroup `cpu.max`): on 64 cores with a quota of 4, threads on
more than 4 only make each other wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .configurations import Configuration

PROCESSOR = Path("sys/devices/system/cpu")
CONTROL = Path("sys/fs/cgroup")
GROUPS = Path("proc/self/cgroup")


@dataclass(frozen=True)
class Machine:
    """What this process may use."""

    cores: tuple[int, ...]
    """By number, in the order in which they are given out: those of a socket are together, and no
    core gets a second hardware thread before all have their first."""
    quota: float
    """So many seconds of cores it gets in a second; infinite: no quota."""

    @property
    def usable(self) -> int:
        """How many cores are busy at most without any waiting for another."""
        return max(1, int(min(len(self.cores), self.quota)))


@dataclass(frozen=True)
class Masks:
    """The cores of one process."""

    samplers: tuple[int, ...]
    """Empty: what samples shares those that train."""
    trainers: tuple[int, ...]


def machine(root: Path = Path("/"), allowed: Iterable[int] | None = None) -> Machine:
    """What the system says.

    Args:
        root: Where `sys` and `proc` are.
        allowed: The cores of the mask, None: those of this thread.
    """
    cores = os.sched_getaffinity(0) if allowed is None else set(allowed)
    places = {core: _place(root / PROCESSOR / f"cpu{core}" / "topology") for core in cores}
    threads: dict[tuple[int, int], int] = {}
    order: dict[int, tuple[int, int, int, int]] = {}
    for core in sorted(cores):
        socket, inner = places[core] or (0, core)
        nth = threads[socket, inner] = threads.get((socket, inner), -1) + 1
        order[core] = (nth, socket, inner, core)
    return Machine(tuple(sorted(cores, key=lambda c: order[c])), _quota(root))


def masks(found: Machine, configuration: Configuration) -> list[Masks]:
    """The cores of each process: no two share one.

    Raises:
        ValueError: The configuration needs more cores than are usable.
    """
    if configuration.cores > found.usable:
        raise ValueError(
            f"configuration: {configuration} needs {configuration.cores} cores,"
            f" and {found.usable} are usable ({len(found.cores)} in the mask,"
            f" a quota of {found.quota:g})"
        )
    samplers, each = configuration.samplers, configuration.samplers + configuration.trainers
    parts = [found.cores[k * each : (k + 1) * each] for k in range(configuration.processes)]
    return [Masks(samplers=part[:samplers], trainers=part[samplers:]) for part in parts]


def bind(cores: Iterable[int]) -> None:
    """Binds all threads of this process, and so those that they start, to these cores."""
    chosen = set(cores)
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), chosen)


def _place(topology: Path) -> tuple[int, int] | None:
    """The socket, and the core in it, of a hardware thread; None where the system does not say."""
    try:
        socket = int((topology / "physical_package_id").read_text())
        return socket, int((topology / "core_id").read_text())
    except (OSError, ValueError):
        return None


def _quota(root: Path) -> float:
    """The least of those of the process's groups and all that these are in."""
    try:
        lines = (root / GROUPS).read_text().splitlines()
    except OSError:  # no control groups: no quota
        return float("inf")
    found = [float("inf")]
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for base in _bases(root / CONTROL, controllers):
            group = base / name.lstrip("/")
            # A container may see its own group as the root, under a name from outside.
            for folder in {group, base, *(p for p in group.parents if base in p.parents)}:
                found.append(_of_group(folder, second=not controllers))
    return min(found)


def _bases(control: Path, controllers: str) -> list[Path]:
    """Where the groups are: of version 2 all, of version 1 those of the controllers."""
    if not controllers:
        return [control, control / "unified"]
    return [control / controllers, control / "cpu"]


def _of_group(folder: Path, second: bool) -> float:
    """The quota of one group, of the second version of control groups or the first."""
    try:
        if second:
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):  # a group without a limit may have no such file
        return float("inf")
    if quota == "max" or int(quota) <= 0:
        return float("inf")
    return int(quota) / int(period)
