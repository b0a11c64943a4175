"""`python -m gnnc.bench.gpu --out results.json`: checks and measures the CUDA target on a machine
with an NVIDIA GPU, in less than eight minutes a run.

Parts (bench/gpu_plan.py) run one after the other in a child process, each within its own time. The
file keeps what each gave, or its error; a part that is there is not run again (`--retry`: those
that failed are). What no time is left for, the next run does. Beside the file, a document and, with
matplotlib, a picture are written (bench/gpu_report.py). docs/gpu.md says how to read them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

from ..frontend.tools.children import Child, ChildFailed, Message, Refused
from ..frontend.tools.report import check_place
from ..runtime import durable_file
from . import gpu_plan, gpu_report
from .gpu_plan import Part

CHILD = "gnnc.bench.gpu_child"
SECONDS = 450.0
"""What a run may take."""
NO_GPU = 2
"""The exit status where there is none."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where all is well, 1 where a part failed or a check is not good, 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m gnnc.bench.gpu", description=__doc__)
    names = [part.name for part in gpu_plan.parts()]
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="results, in JSON")
    parser.add_argument(
        "--parts", nargs="+", metavar="NAME", default=["*"], help=f"(*: all) {', '.join(names)}"
    )
    parser.add_argument("--retry", action="store_true", help="run parts again that failed")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="what a run may take")
    args = parser.parse_args(arguments)
    chosen = [p for p in gpu_plan.parts() if any(fnmatch(p.name, n) for n in args.parts)]
    if unknown := [n for n in args.parts if not any(fnmatch(name, n) for name in names)]:
        parser.error(f"--parts: there is no part {', '.join(unknown)}")
    try:
        check_place("--out", args.out)
    except Refused as error:
        parser.error(str(error))
    if (why := no_gpu()) is not None:
        print(f"gnnc.bench.gpu: no NVIDIA GPU here: {why}", file=sys.stderr)
        return NO_GPU
    try:
        run = Run(args.out, "cuda", args.seconds, args.retry)
        run.check_device(device_name())
    except (Refused, json.JSONDecodeError) as error:
        parser.error(f"--out: {args.out}: {error}")
    return run.run(chosen)


def no_gpu() -> str | None:
    """Why nothing can be run; None where a GPU is at hand."""
    try:
        import torch
    except ImportError as error:
        return f"torch cannot be imported ({error})"
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} for CUDA {torch.version.cuda} finds none"
    return None


def device_name() -> str:
    """The GPU's name, as the part `device` keeps it."""
    import torch

    return torch.cuda.get_device_name(0)


class Run:
    """One run into a file of results, on a device of bench/gpu_device.py."""

    def __init__(
        self,
        out: Path,
        device: str,
        seconds: float = SECONDS,
        retry: bool = False,
        child: str = CHILD,
    ) -> None:
        self.out, self.device, self.module = out, device, child
        self.retry = retry
        self.end = time.monotonic() + seconds
        self.results: Message = {"parts": {}}
        if out.is_file():
            self.results = json.loads(out.read_text())
        self.child: Child | None = None

    def check_device(self, name: str) -> None:
        """Raises Refused where the results are those of another device."""
        device = self.results["parts"].get("device", {}).get("result", {"device": name})["device"]
        if device != name:
            raise Refused(f"has results of {device}, and this is {name}: name another file")

    def run(self, chosen: Sequence[Part]) -> int:
        """Runs what is not there yet, and writes everything; returns the exit status."""
        done: Message = self.results["parts"]
        left: list[str] = []
        with ExitStack() as stack:
            stack.callback(self.end_child)
            for part in chosen:
                if part.name in done and not (self.retry and "error" in done[part.name]):
                    print(f"{part.name}: is there", flush=True)
                elif part.seconds > self.end - time.monotonic():
                    left.append(part.name)
                else:
                    done[part.name] = self.one(part)
                    self.save()
        if left:
            print(f"no time is left for {', '.join(left)}: run the same again", flush=True)
        print("\n" + gpu_report.document(self.results), flush=True)
        return 1 if any(failed(done[p.name]) for p in chosen if p.name in done) else 0

    def one(self, part: Part) -> Message:
        """The answer of one part, or its error."""
        print(f"{part.name}: ", end="", flush=True)
        start = time.monotonic()
        found = self.ask(part)
        seconds = time.monotonic() - start
        if "error" in found:
            self.end_child()  # its context may be of no use any more
        print(f"{found['error'].splitlines()[0] if 'error' in found else 'done'}, {seconds:.1f} s")
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        return {"date": now, "took_seconds": seconds, **found}

    def ask(self, part: Part) -> Message:
        """Asks the child, which is ended when the part's time is over."""
        if self.child is None:
            self.child = Child(self.module)
        late = threading.Event()
        timer = threading.Timer(part.seconds, stopper(self.child.process, late))
        timer.start()
        try:
            return self.child.ask({**part.question, "device": self.device})
        except ChildFailed as error:
            told = f"took longer than {part.seconds:.0f} s" if late.is_set() else str(error)
            return {"error": told, "out_of_memory": False}
        finally:
            timer.cancel()

    def end_child(self) -> None:
        if self.child is not None:
            self.child.end()
        self.child = None

    def save(self) -> None:
        """Results, document and picture as they are now."""
        text = json.dumps(self.results, indent=2) + "\n"
        durable_file.replace(self.out, memoryview(text.encode()))
        document = gpu_report.document(self.results) + "\n"
        self.out.with_suffix(".md").write_text(document)
        gpu_report.draw(self.results, self.out.with_suffix(".svg"))


def stopper(process: int, late: threading.Event) -> Callable[[], None]:
    """What ends a child that takes too long."""

    def stop() -> None:
        late.set()
        os.kill(process, signal.SIGKILL)

    return stop


def failed(part: Message) -> bool:
    """Whether a part has an error, or found one."""
    return "error" in part or not part["result"].get("good", True)


if __name__ == "__main__":
    sys.exit(main())
