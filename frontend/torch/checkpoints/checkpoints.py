"""`gnnc.save_checkpoint` and `gnnc.load_checkpoint`.

What is saved is the same on all ranks, or rows of sharded parameters, which rank 0 gathers; it does
not depend on how many ranks there are. So a checkpoint is one file, which rank 0 writes and reads,
and another number of ranks may go on from it.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import torch

from ....runtime.ranks.communicator import Communicator
from ....runtime.ranks.world import world
from . import file, plain, shards
from .file import BadCheckpoint
from .fit import keeps_state, misfit, traits

FORMAT = f"{file.OURS}, 1"
PATIENCE = 600.0
"""Seconds that ranks wait for the one that writes or reads."""


def save_checkpoint(path: str | os.PathLike[str], /, **saved: Any) -> None:
    """Writes what a training needs to go on: `save_checkpoint("run.pt", model=model,
    optimizer=optimizer, epoch=epoch)`.

    Of parameters that are sharded (see `gnnc.distribute`), and of what an optimizer keeps for them,
    all rows are in the file; rank 0 gathers them.

    The state of torch's random numbers on the CPU is saved too, by which dropout draws. The file
    is replaced as a whole: a run that is killed at any moment leaves the old one or the new one.
    Of several ranks all call it with the same arguments, and rank 0 writes.

    Args:
        path: the file. Its folder has to be there.
        **saved: by name, models, optimizers, schedules and other objects with `state_dict` and
            `load_state_dict`, of which that state is saved; or values: tensors, numbers, texts, and
            lists, tuples, sets and dicts of these.

    Raises:
        TypeError: a value is of another type; the message says which.
        OSError: the file cannot be written, and is as it was; on all ranks.
        Disagreement: ranks have other parameters, optimizer states or values; on all ranks.
    """
    target = _path(path)
    states = {name: x.state_dict() if keeps_state(x) else x for name, x in saved.items()}
    communicator = world()
    with communicator.stage("write a checkpoint", PATIENCE):
        alike = {name: shards.described(x, states[name]) for name, x in saved.items()}
        _agree(target, alike, communicator)
        for name in sorted(saved):
            states[name] = shards.gathered(saved[name], states[name], communicator)
        random = communicator.gather(torch.get_rng_state())
        error: OSError | None = None
        if random is not None:
            content = {
                "states": states,
                "traits": {name: traits(x) for name, x in saved.items()},
                "random": random,
            }
            try:
                file.write(target, FORMAT, content)
            except OSError as found:
                error = found
        told = communicator.broadcast(None if error is None else _of(error))
        if told is not None:
            raise OSError(told[0], f"checkpoint {target} cannot be written: {told[1]}") from error


def load_checkpoint(path: str | os.PathLike[str], /, **objects: Any) -> dict[str, Any]:
    """Goes on from a checkpoint: `epoch = load_checkpoint("run.pt", model=model,
    optimizer=optimizer)["epoch"]`.

    The objects get the state that was saved by their names, and torch its random numbers on the
    CPU. Where there is an error, all of them are as they were. Of several ranks all call it, after
    `gnnc.distribute`, and rank 0 reads; they may be another number than those that saved.

    Args:
        path: the file.
        **objects: models, optimizers, schedules and other objects with `load_state_dict`.

    Returns:
        What else was saved, by name: values, and of objects that are not given here the state.
        Tensors are on the CPU.

    Raises:
        TypeError: an object has no `state_dict` and `load_state_dict`.
        OSError: the file cannot be read; on all ranks.
        BadCheckpoint: a `ValueError`: the file is damaged, is no checkpoint or one of another
            version, or has no state that an object can take; on all ranks.
        Disagreement: ranks give other arguments.
    """
    source = _path(path)
    for name, x in objects.items():
        if not keeps_state(x):
            raise TypeError(
                f"{name} must have state_dict and load_state_dict, which {type(x).__name__} has "
                "not; values are in the dict that load_checkpoint returns"
            )
    communicator = world()
    with communicator.stage("read a checkpoint", PATIENCE):
        communicator.agree("path, an argument of load_checkpoint", str(source))
        communicator.agree("the objects for load_checkpoint", str(sorted(objects)))
        content = file.unpacked(_read(source, communicator), source, FORMAT)
        states: dict[str, Any] = content["states"]
        _together(communicator, _first_misfit(source, objects, content))
        _restore(source, objects, states, communicator)
        random = content["random"]
        same = len(random) == communicator.size
        torch.set_rng_state(random[communicator.rank if same else 0])
        communicator.barrier()  # ranks that are threads have one state, which others draw from
    return {name: state for name, state in states.items() if name not in objects}


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a file, not {type(path).__name__}")
    return Path(path)


def _agree(path: Path, states: dict[str, Any], communicator: Communicator) -> None:
    """
    Raises:
        TypeError: a value is no plain data.
        Disagreement: ranks have other ones.
    """
    if communicator.size == 1:
        for name, state in states.items():
            plain.check(state, name)
        return
    digests = {name: plain.digest(states[name], name) for name in sorted(states)}
    communicator.agree("path, an argument of save_checkpoint", str(path))
    communicator.agree("the names for save_checkpoint", str(list(digests)))
    for name, found in digests.items():
        communicator.agree(f"{name}, an argument of save_checkpoint", found)


def _read(path: Path, communicator: Communicator) -> bytes:
    """The bytes of the file on all ranks, or an OSError."""
    told: bytes | tuple[int | None, str] = b""
    error: OSError | None = None
    if communicator.rank == 0:
        try:
            told = path.read_bytes()
        except OSError as found:
            told, error = _of(found), found
    told = communicator.broadcast(told)
    if not isinstance(told, bytes):
        raise OSError(told[0], f"checkpoint {path} cannot be read: {told[1]}") from error
    return told


def _of(error: OSError) -> tuple[int | None, str]:
    """What other ranks are told of an error."""
    return error.errno, error.strerror or str(error)


def _first_misfit(path: Path, objects: dict[str, Any], content: dict[str, Any]) -> str | None:
    states, told = content["states"], content["traits"]
    for name, x in objects.items():
        if name not in states:
            has = ", ".join(states) or "nothing"
            return f"{path} has no {name}: it has {has}"
        if problem := misfit(x, states[name], told[name]):
            return f"{name} does not fit checkpoint {path}: {problem}"
    return None


def _restore(
    path: Path, objects: dict[str, Any], states: dict[str, Any], communicator: Communicator
) -> None:
    """Loads all, or none: what only `load_state_dict` finds out may come after others were loaded,
    and on one rank alone."""
    before = {name: copy.deepcopy(x.state_dict()) for name, x in objects.items()}
    try:
        problem = None
        for name, x in objects.items():
            try:
                x.load_state_dict(shards.own(x, states[name]))
            except Exception as error:  # whatever a class says to a state that is not its own
                problem = f"{name} does not take its state from checkpoint {path}: {error!r}"
                break
        _together(communicator, problem)
    except BaseException:
        for name, x in objects.items():
            x.load_state_dict(before[name])
        raise


def _together(communicator: Communicator, problem: str | None) -> None:
    """Raises on all ranks what the first one has that has a problem.

    Raises:
        BadCheckpoint: there is one.
    """
    found = communicator.gather(problem)
    told = communicator.broadcast(found and next(((r, p) for r, p in enumerate(found) if p), None))
    if told is not None:
        rank, text = told
        raise BadCheckpoint(text if communicator.size == 1 else f"rank {rank}: {text}")
