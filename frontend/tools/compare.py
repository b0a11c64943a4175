"""One model trained eagerly and compiled, in processes that take turns, and what came of it."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from ...runtime.cpu.heap import PLAIN_TORCH
from . import live
from .checkpoint_folder import CheckpointFolder
from .children import Child, Message
from .history import warm_seconds

WAYS = ("eager", "compiled")
_CHILD = "gnnc.frontend.tools.train"


def compare(
    settings: Message,
    seeds: int,
    ways: Sequence[str] = WAYS,
    folder: CheckpointFolder | None = None,
    every: int = 1,
    trials: int | None = None,
    predictions: int = 0,
) -> Message:
    """Trains `seeds` times each way, in turns, from equal parameters; returns what `report` reads.

    `settings` has those of `training.Settings` but the seed; its `mode` is the compiled way's. With
    a folder, each training writes its checkpoint after `every` epochs, and goes on from the one
    that is there. With `trials`, so many at most find how the first training of a way is split over
    processes, and the others are split alike. Behind each so many `predictions` are timed, of the
    model with its parameters frozen. Times are medians over all epochs of all seeds but
    the first of each process, which compiles.

    Raises:
        ChildFailed: a training failed; its own error is on standard error.
        Refused: a training cannot be done, or a checkpoint is not one of it.
    """
    questions = {
        way: [
            _question(settings, way, seed, folder, every, trials) | {"predictions": predictions}
            for seed in range(seeds)
        ]
        for way in ways
    }
    answers: dict[str, list[Message]] = {way: [] for way in ways}
    with ExitStack() as stack:
        children = {
            way: stack.enter_context(
                Child(_CHILD, environment=PLAIN_TORCH if way == "eager" else None)
            )
            for way in ways
        }
        if folder is not None:
            for way, child in children.items():
                child.ask({"check": questions[way]})
        for seed in range(seeds):
            for way, child in children.items():
                with live.shown(f"{way:8} seed {seed}", settings["epochs"], sys.stderr) as tell:
                    answers[way].append(child.ask(questions[way][seed], tell))
            if trials is not None and seed == 0:
                _tell_configuration(questions, answers)
    return {
        "settings": settings | {"seeds": seeds},
        "graph": answers[ways[0]][0]["graph"],
        **{way: _summary(found) for way, found in answers.items()},
    }


def _question(
    settings: Message,
    way: str,
    seed: int,
    folder: CheckpointFolder | None,
    every: int,
    trials: int | None,
) -> Message:
    mode = "eager" if way == "eager" else settings["mode"]
    file = None if folder is None else str(folder.file(way, seed))
    asked = {**settings, "mode": mode, "seed": seed}
    tuning = None if trials is None else {"trials": trials, "configuration": None}
    return {"settings": asked, "checkpoint": file, "every": every, "tuning": tuning}


def _tell_configuration(
    questions: Mapping[str, Sequence[Message]], answers: Mapping[str, Sequence[Message]]
) -> None:
    """Puts what the first training found into the questions of the others."""
    for way, asked in questions.items():
        for question in asked:
            question["tuning"]["configuration"] = answers[way][0]["tuning"]["configuration"]


def _summary(answers: Sequence[Message]) -> Message:
    accuracies: list[float] = [a["accuracy"] for a in answers]
    times = [s for a in answers for s in warm_seconds(a["epoch_seconds"], a["starts"])]
    summary: Message = {
        "accuracy": statistics.mean(accuracies),
        "accuracies": accuracies,
        "losses": [a["loss"] for a in answers],
        "epoch_seconds": statistics.median(times),
        "first_epoch_seconds": answers[0]["epoch_seconds"][0],
        # Later seeds start with memory that the allocator kept from the first.
        "memory": answers[0]["memory"],
        "memory_exact": answers[0]["memory_exact"],
        "histories": [_history(a) for a in answers],
    }
    for name in ("compile_seconds", "kernels", "fallbacks", "tuning"):
        if name in answers[0]:
            summary[name] = answers[0][name]
    if "prediction_seconds" in answers[0]:
        predicted = [s for a in answers for s in a["prediction_seconds"]]
        summary["prediction_seconds"] = statistics.median(predicted)
    return summary


def _history(answer: Mapping[str, object]) -> Message:
    """One training, epoch by epoch."""
    return {k: answer[k] for k in ("losses", "epoch_seconds", "evaluations", "starts")}
