"""How the cores of a machine can be split over processes that sample and train.

After ARGO (Lin et al., "ARGO: An Auto-Tuning Runtime System for Scalable GNN Training on Multi-Core
Processor", IPDPS 2024), which tunes these three numbers.
"""

from __future__ import annotations

from typing import NamedTuple


class Configuration(NamedTuple):
    """So many processes, each with its own cores to sample and to train."""

    processes: int
    samplers: int
    """Cores of each process that sample; 0: the cores that train sample in between."""
    trainers: int

    @property
    def cores(self) -> int:
        """All that it needs."""
        return self.processes * (self.samplers + self.trainers)


def configurations(
    cores: int, *, least_samplers: int = 1, most_processes: int | None = None
) -> list[Configuration]:
    """Every one that so many cores can run, sorted.

    Args:
        cores: n (s + t) of n processes with s and t cores each is at most this.
        least_samplers: s is at least this: 1 as in the paper, or 0.
        most_processes: n is at most this, None: as many as there are cores. A batch of b seeds can
            be split over b processes.

    Raises:
        ValueError: A number is too small, naming it, or no configuration needs so few cores.
    """
    if cores < 1:
        raise ValueError(f"cores must be at least 1, got {cores}")
    if least_samplers not in (0, 1):
        raise ValueError(f"least_samplers must be 0 or 1, got {least_samplers}")
    if most_processes is not None and most_processes < 1:
        raise ValueError(f"most_processes must be at least 1, got {most_processes}")
    if cores < least_samplers + 1:
        raise ValueError(
            f"cores: {cores}, and a process that samples on a core of its own needs 2;"
            " least_samplers=0 lets it sample where it trains"
        )
    return [
        Configuration(n, s, t)
        for n in range(1, min(cores, most_processes or cores) + 1)
        for s in range(least_samplers, cores // n)
        for t in range(1, cores // n - s + 1)
    ]


def default(cores: int, *, least_samplers: int = 1) -> Configuration:
    """What a script does untuned: one process, which trains on all cores that need not sample.

    Raises:
        ValueError: As :func:`configurations`.
    """
    configurations(cores, least_samplers=least_samplers, most_processes=1)
    return Configuration(1, least_samplers, cores - least_samplers)
