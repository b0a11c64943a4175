"""The child process of bench/gpu.py: does one part after the other on a GPU.

A question has `do`, the name of a function of `PARTS`, the `device`, and what the function takes
besides; the answer is `{"result": ..}` or `{"error": .., "out_of_memory": ..}`. After an error the
parent takes a new child: a fault of a kernel leaves the GPU's context useless.

`python -m gnnc.bench.gpu_child small` trains small compiled models once, for compute-sanitizer.
"""

from __future__ import annotations

import copy
import gc
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import SimpleConv

import gnnc
from gnnc.bench import roofline_child
from gnnc.bench.contestants import Prepared, PreparedWhole, Step
from gnnc.bench.devices import DEVICES as PREDICTED
from gnnc.bench.gpu_device import DEVICES, Device
from gnnc.bench.gpu_models import CHECKS
from gnnc.bench.gpu_plan import WIDTHS
from gnnc.bench.graphs import GRAPHS, described
from gnnc.bench.roofline import predict
from gnnc.bench.tasks import Task, task_of
from gnnc.frontend.tools.children import Message, serve

TOLERANCE = 1e-4
"""How far a value or gradient may be from PyG's, of the largest number of its tensor: sums over
thousands of float32 numbers in another order."""
LEAST = 1e-2
"""Of the largest number of all tensors, what the largest of one counts at least: a gradient that is
0 but for rounding, as that of a bias of keys that a softmax takes away, is all error."""
SMALL = ("gcn", "sage-max", "gat", "rgcn")
"""The models that compute-sanitizer watches: each kind of kernel is in one of them."""
PACKAGES = ("gnnc", "torch", "torch-geometric", "numpy", "xdsl", "triton")
WARM_UP, ROUNDS, EPOCHS = 2, 5, 5
COPIED, COPIES = 2**30, 20
"""Bytes of a copy, and how many are timed."""


def facts(device: Device) -> Message:
    """The device, and the versions of what is installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return {**device.facts(), "versions": versions}


# ---------------------------------------------------------------- checks


def check(device: Device, model: str) -> Message:
    """A model of bench/gpu_models.py, compiled, against the same in PyG on the same device: values
    and gradients of parameters and floating-point inputs in training, values in evaluation."""
    torch.manual_seed(0)
    made = CHECKS[model]
    eager = made.make().to(device.name)
    compiled = gnnc.compile(copy.deepcopy(eager))
    inputs = device.move(made.inputs())
    want, got = numbers(eager, inputs), numbers(compiled, inputs)
    least = LEAST * max(x.abs().max().item() for x in want.values())
    differences = {name: difference(got[name], x, least) for name, x in want.items()}
    worst = max(differences, key=lambda name: differences[name])
    in_torch = gnnc.explain(compiled).fallbacks
    close = differences[worst] <= TOLERANCE
    found = {"model": model, "worst": worst, "difference": differences[worst]}
    found |= {"tolerance": TOLERANCE, "numbers": sum(x.numel() for x in want.values())}
    return {**found, "close": close, "in_torch": in_torch, "good": close and not in_torch}


def numbers(model: nn.Module, inputs: tuple[Any, ...]) -> dict[str, Tensor]:
    """Results and gradients of a model by name."""
    leaves, shape = torch.utils._pytree.tree_flatten(inputs)
    leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in leaves]
    given = torch.utils._pytree.tree_unflatten(leaves, shape)
    model.train()
    results = torch.utils._pytree.tree_leaves(model(*given))
    loss = sum(
        (y * torch.sin(torch.arange(y.numel(), device=y.device)).view_as(y)).sum() for y in results
    )
    loss.backward()
    found = {f"result {k}": y.detach() for k, y in enumerate(results)}
    found |= {f"gradient of {n}": p.grad for n, p in model.named_parameters() if p.grad is not None}
    found |= {f"gradient of input {k}": x.grad for k, x in enumerate(leaves) if x.grad is not None}
    model.eval()
    with torch.no_grad():
        evaluated = torch.utils._pytree.tree_leaves(model(*given))
    return found | {f"result {k} in evaluation": y for k, y in enumerate(evaluated)}


def difference(got: Tensor, want: Tensor, least: float = 0.0) -> float:
    """The largest difference, of the largest number that is wanted, or of `least` (infinite for
    what is no number)."""
    if not got.isfinite().all():
        return float("inf")
    apart, size = (got - want).abs().max().item(), max(want.abs().max().item(), least)
    return apart / size if size else apart


# ---------------------------------------------------------------- times


def copy_bandwidth(device: Device) -> Message:
    """Bytes a second of copies, read and written: the best of many."""
    count = COPIED if device.name == "cuda" else COPIED // 64
    source = torch.ones(count // 4, device=device.name)
    target = torch.empty_like(source)
    device.laps(lambda: target.copy_(source), WARM_UP)
    seconds = device.laps(lambda: target.copy_(source), COPIES)
    return {"bytes": 2 * count, "bytes_a_second": 2 * count / min(seconds)}


def _gnnc(task: Task, device: Device) -> Prepared:
    return Prepared(gnnc.compile(task.model().to(device.name)), task.inputs, task.y)


def _gnnc_train(task: Task, device: Device) -> Prepared:
    return PreparedWhole(Step(task.model()).to(device.name), (task.y, *task.inputs), None)


def _pyg(task: Task, device: Device) -> Prepared:
    return Prepared(task.model().to(device.name), task.inputs, task.y)


def _pyg_compiled(task: Task, device: Device) -> Prepared:
    return Prepared(torch.compile(task.model().to(device.name)), task.inputs, task.y)


CONTESTANTS: dict[str, Callable[[Task, Device], Prepared]] = {
    "gnnc": _gnnc,
    "gnnc-train": _gnnc_train,
    "pyg": _pyg,
    "pyg-compiled": _pyg_compiled,
}


ABSENT = {"rgcn": {"pyg-compiled": "torch.compile unrolls its loop over relations for minutes"}}
"""Models that a contestant is not asked for, and why."""


def epochs(device: Device, model: str, graph: str) -> Message:
    """Training steps of a model of `gnnc bench`, contestants in turns, as bench/race.py reports
    them: the first with compilation, the median of all turns. One that fails is told, and out."""
    task = described(model, graph)
    found = task_of(model, GRAPHS[graph].question(None), task["hidden"], task["layers"])
    given = on(found, device)
    results: dict[str, Message] = {}
    steps: dict[str, Callable[[], Any]] = {}
    for name, make in CONTESTANTS.items():
        if name in ABSENT.get(model, {}):
            continue
        try:
            steps[name], results[name] = ready(make, given, device)
        except Exception as error:  # whatever it is, the table tells of it
            results[name] = failure(error)
    for _ in range(ROUNDS):
        for name, step in list(steps.items()):
            try:
                results[name]["seconds"] += device.laps(step, 1 + EPOCHS)[1:]
            except Exception as error:
                results[name] = failure(error)
                del steps[name]
    for name in steps:
        results[name]["median_seconds"] = statistics.median(results[name]["seconds"])
    told = {"memory_limit": device.facts()["memory"], "absent": ABSENT.get(model, {})}
    return {**task, **told, "results": results}


def on(task: Task, device: Device) -> Task:
    """A task whose tensors are on a device."""
    return replace(task, **{f.name: device.move(getattr(task, f.name)) for f in fields(task)})


def ready(
    make: Callable[[Task, Device], Prepared], task: Task, device: Device
) -> tuple[Callable[[], Any], Message]:
    """A contestant after its first steps, and what these took."""
    mark, start = device.mark(), time.perf_counter()
    torch.manual_seed(0)
    prepared = make(task, device)
    training = prepared.training(torch.optim.Adam(prepared.model.parameters(), lr=0.01))
    loss = training.step(None).item()
    first = time.perf_counter() - start
    for _ in range(WARM_UP):
        training.step(None)
    result = {"first_seconds": first, "loss": loss, "seconds": [], **device.memory_since(mark)}
    if make in (_gnnc, _gnnc_train):
        result["in_torch"] = gnnc.explain(training.compiled).fallbacks
    return lambda: training.step(None), result


def aggregation(device: Device, graph: str) -> Message:
    """Sums over neighbours alone, forward, in turns: compiled, in PyG, and as a product of a CSR
    matrix that is made once (cuSPARSE, on a GPU)."""
    found = task_of("gcn", GRAPHS[graph].question(None), 8, 2)
    x, edges = device.move(found.inputs)
    nodes, count = len(x), edges.shape[1]
    csr = adjacency(edges, nodes)
    eager = SimpleConv(aggr="sum")
    compiled = gnnc.compile(copy.deepcopy(eager))
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "gnnc": lambda rows: compiled(rows, edges),
        "pyg": lambda rows: eager(rows, edges),
        "torch.sparse.mm": lambda rows: torch.sparse.mm(csr, rows),
    }
    widths: list[Message] = []
    for width in WIDTHS:
        rows = torch.randn(nodes, width, device=x.device)
        with torch.no_grad():
            widths.append(one_width(device, calls, rows, count))
    return {"graph": graph, "nodes": nodes, "edges": count, "widths": widths}


def adjacency(edges: Tensor, nodes: int) -> Tensor:
    """The CSR matrix whose product with rows sums those of the sources (edges 2 x e, int64; indices
    of 32 bits, which cuSPARSE is faster with)."""
    source, destination = edges
    ends = torch.bincount(destination, minlength=nodes).cumsum(0)
    first = torch.cat([ends.new_zeros(1), ends]).int()
    columns = source[destination.argsort(stable=True)].int()
    ones = torch.ones(len(source), device=edges.device)
    torch.sparse.check_sparse_tensor_invariants.disable()  # what it does anyway, and warns of
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return torch.sparse_csr_tensor(first, columns, ones, (nodes, nodes))


def one_width(
    device: Device, calls: Mapping[str, Callable[[Tensor], Tensor]], rows: Tensor, edges: int
) -> Message:
    """The medians of all on rows of one width, and how far they are from PyG's sums."""
    nodes, width = rows.shape
    want = calls["pyg"](rows)
    apart = {name: difference(call(rows), want) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            seconds[name] += device.laps(lambda call=call: call(rows), 1 + EPOCHS)[1:]
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    moved = edges * (4 * width + 4) + nodes * 4 * width + (nodes + 1) * 8
    return {"width": width, "moved": moved, "seconds": medians, "differences": apart}


def count(device: Device, model: str, graph: str) -> Message:
    """The bytes that the kernels of gnnc's step move, counted, and what is predicted for them
    (`gnnc bench roofline`); the device has no part in it."""
    task = described(model, graph)
    question = GRAPHS[graph].question(None)
    found = roofline_child.kernels("gnnc", model, question, task["hidden"], task["layers"])[
        "kernels"
    ]
    moved = sum(k["handed_on"] + sum(a[0] for a in k["accesses"]) for k in found)
    seconds = {n: sum(predict(k, d).seconds for k in found) for n, d in PREDICTED.items()}
    return {**task, "moved": moved, "predicted": seconds}


# ---------------------------------------------------------------- compute-sanitizer


def sanitizer(device: Device, tool: str, seconds: float) -> Message:
    """What compute-sanitizer finds in small compiled models, or why it is not asked."""
    program = sanitizer_program()
    if device.name != "cuda" or program is None:
        return {"tool": tool, "absent": "compute-sanitizer is neither on PATH nor in CUDA_HOME/bin"}
    command = [
        program,
        "--tool",
        tool,
        "--error-exitcode",
        "9",
        sys.executable,
        "-m",
        __spec__.name,
    ]
    process = subprocess.Popen(
        [*command, "small"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the models too, not only who watches them
        process.communicate()
        raise TimeoutError(f"{tool} took longer than {seconds:.0f} s") from None
    lines = output.splitlines()
    summary = [line for line in lines if "SUMMARY" in line]
    good = process.returncode == 0
    told = [] if good else lines[:40]
    return {"tool": tool, "models": list(SMALL), "good": good, "summary": summary, "output": told}


def sanitizer_program() -> str | None:
    """Where compute-sanitizer is."""
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    beside = Path(home) / "bin" / "compute-sanitizer"
    return shutil.which("compute-sanitizer") or (str(beside) if beside.is_file() else None)


def small() -> None:
    """One training step of small models, compiled, on the GPU."""
    for name in SMALL:
        torch.manual_seed(0)
        made = CHECKS[name]
        numbers(gnnc.compile(made.make().to("cuda")), DEVICES["cuda"]().move(made.inputs()))


# ---------------------------------------------------------------- the child's side


PARTS: dict[str, Callable[..., Message]] = {
    "facts": facts,
    "check": check,
    "copy": copy_bandwidth,
    "epochs": epochs,
    "aggregation": aggregation,
    "sanitizer": sanitizer,
    "count": count,
}


def failure(error: Exception) -> Message:
    """An error as results keep it."""
    where = traceback.extract_tb(error.__traceback__)[-3:]
    calls = [f"{Path(f.filename).name}:{f.lineno} in {f.name}" for f in where]
    told = f"{type(error).__name__}: {error}".strip()
    return {"error": f"{told}\n{'; '.join(calls)}", "out_of_memory": is_memory(error)}


def is_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError | torch.cuda.OutOfMemoryError)


def work(question: Message) -> Message:
    """Does one part."""
    asked = dict(question)
    do, device = PARTS[asked.pop("do")], DEVICES[asked.pop("device")]()
    try:
        return {"result": do(device, **asked)}
    except Exception as error:  # whatever it is, it is this part's result
        return failure(error)
    finally:
        torch._dynamo.reset()
        gc.collect()


if __name__ == "__main__":
    small() if sys.argv[1:] == ["small"] else serve(work)
