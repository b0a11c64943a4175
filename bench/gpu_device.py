"""What bench/gpu.py needs of a device: its name, times of calls, memory. The CPU stands in for a
GPU in tests of the script itself."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..frontend.tools.children import Message


class Device(ABC):
    """A device of torch: `name` is what `tensor.to` takes."""

    name: str

    def move(self, tree: Any) -> Any:
        """Nested tensors on the device."""
        return pytree.tree_map_only(torch.Tensor, lambda x: x.to(self.name), tree)

    @abstractmethod
    def facts(self) -> Message:
        """What results depend on."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for what was launched."""

    @abstractmethod
    def laps(self, call: Callable[[], Any], count: int) -> list[float]:
        """Seconds of each of `count` calls that follow one another."""

    @abstractmethod
    def mark(self) -> Mark:
        """Begin to watch the memory."""

    @abstractmethod
    def memory_since(self, mark: Mark) -> Message:
        """`memory`: the peak of what torch's allocator gave above that at the mark, in bytes;
        `device_memory`: what of the device is taken since, by whomever."""


@dataclass(frozen=True)
class Mark:
    """Bytes given by torch's allocator, and free on the device."""

    allocated: int
    free: int


class Cuda(Device):
    """The current NVIDIA GPU."""

    name = "cuda"

    def facts(self) -> Message:
        found = torch.cuda.get_device_properties(0)
        return {
            "device": found.name,
            "capability": f"{found.major}.{found.minor}",
            "memory": found.total_memory,
            "multiprocessors": found.multi_processor_count,
            "cuda": torch.version.cuda,
        }

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def laps(self, call: Callable[[], Any], count: int) -> list[float]:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        events[0].record()
        for event in events[1:]:
            call()
            event.record()
        torch.cuda.synchronize()
        pairs = zip(events, events[1:], strict=False)
        return [a.elapsed_time(b) * 1e-3 for a, b in pairs]

    def mark(self) -> Mark:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return Mark(torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0])

    def memory_since(self, mark: Mark) -> Message:
        torch.cuda.synchronize()
        peak, free = torch.cuda.max_memory_allocated(), torch.cuda.mem_get_info()[0]
        return {"memory": peak - mark.allocated, "device_memory": mark.free - free}


class Host(Device):
    """The CPU in the place of a GPU: memory is not watched."""

    name = "cpu"

    def facts(self) -> Message:
        return {"device": "the CPU", "memory": 0}

    def synchronize(self) -> None:
        pass

    def laps(self, call: Callable[[], Any], count: int) -> list[float]:
        found: list[float] = []
        for _ in range(count):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
        return found

    def mark(self) -> Mark:
        return Mark(0, 0)

    def memory_since(self, mark: Mark) -> Message:
        return {"memory": 0, "device_memory": 0}


DEVICES: dict[str, type[Device]] = {d.name: d for d in (Cuda, Host)}
