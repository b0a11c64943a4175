"""MorphGL: who prepares which mini-batch, the CPU or the accelerator, fitted to the hardware."""

from .cache import DegreeCache, Hits
from .checksum import checksum
from .executor import BatchChanged, Executor, Run
from .link import RateLimitedLink
from .partitioner import Feedback, Partitioner
from .plan import Buffers, Split, Times
from .profiler import Profiler
from .registry import ACCELERATOR, ACCELERATOR_AND_LINK, CPU, LINK, Phase, Registry, Resource
from .report import draw, report
from .scheduler import Scheduler
from .simulator import Operation, Schedule, simulate
from .trace import Event, Trace

__all__ = [
    "ACCELERATOR",
    "ACCELERATOR_AND_LINK",
    "CPU",
    "LINK",
    "BatchChanged",
    "Buffers",
    "DegreeCache",
    "Event",
    "Executor",
    "Feedback",
    "Hits",
    "Operation",
    "Partitioner",
    "Phase",
    "Profiler",
    "RateLimitedLink",
    "Registry",
    "Resource",
    "Run",
    "Schedule",
    "Scheduler",
    "Split",
    "Times",
    "Trace",
    "checksum",
    "draw",
    "report",
    "simulate",
]
