"""What ran when on which lane, played or measured: both give the same record."""

from dataclasses import dataclass

from .registry import Phase, Resource

LANES = (Resource.CPU, Resource.LINK, Resource.ACCELERATOR)


@dataclass(frozen=True)
class Wait:
    """How long a lane stood idle before an event, and what it waited for."""

    lane: Resource
    seconds: float
    cause: str


@dataclass(frozen=True)
class Event:
    """One operator's run on one batch. On the CPU, `worker` says which of the workers ran it."""

    phase: Phase
    resources: frozenset[Resource]
    batch: int
    start: float
    end: float
    waits: tuple[Wait, ...] = ()
    worker: int = 0


@dataclass(frozen=True)
class Trace:
    """All events of an epoch, with the time from its start to the end of the last step."""

    events: tuple[Event, ...]
    seconds: float
    workers: int

    def on(self, lane: Resource) -> list[Event]:
        """The lane's events by their start; what keeps two lanes busy is on both."""
        return sorted((e for e in self.events if lane in e.resources), key=lambda e: e.start)

    def busy(self, lane: Resource) -> float:
        """The share of the time during which the lane works, over all workers of the CPU."""
        if not self.seconds:
            return 0.0
        lanes = self.workers if lane == Resource.CPU else 1
        return sum(e.end - e.start for e in self.on(lane)) / (self.seconds * lanes)

    def blocked(self, lane: Resource) -> dict[str, float]:
        """Seconds of waiting by cause, over all workers of the CPU."""
        causes: dict[str, float] = {}
        for wait in (w for e in self.events for w in e.waits):
            if wait.lane == lane and wait.seconds > 0:
                causes[wait.cause] = causes.get(wait.cause, 0.0) + wait.seconds
        return causes
