"""`gnnc.training`: a function with a training loop of torch, of which a step is one program."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from ...compiler import Options
from ...loops.source import Source
from ...training.form import Form, modes_of, read_form
from ...training.functions import Functions, functions_of, run_setup
from ..step import TrainStep, train_step


def training(function: Any = None, /, **options: Any) -> Any:
    """Read a function as a training; as a decorator or a call.

    The function sets up a model and a `torch.optim` optimizer, then loops over a `range` of epochs
    with `optimizer.zero_grad()`, a loss, `loss.backward()` and `optimizer.step()`; reports of an
    epoch follow the step. Called, it does what it says, with all up to the update as one compiled
    program (`gnnc.train_step`). `gnnc build` makes of it a program without Python.

    Args:
        function: a function in that form, as docs/training.md has it.
        **options: see `gnnc.Options`.

    Raises:
        ProgramError: the function has not this form, with file, line, column and what to write.
        TypeError: its source is not to be had, or an option is not known.
    """
    Options(**options)
    if function is None:
        return lambda given: TrainingProgram(given, options)
    return TrainingProgram(function, options)


@dataclass(frozen=True)
class Begun:
    """A training whose setup has run: its local names, and the functions of the rest."""

    names: dict[str, Any]
    functions: Functions
    step: TrainStep


class TrainingProgram:
    """What `training` returns: called as the function that it was written as."""

    def __init__(self, function: Any, given: Mapping[str, Any]) -> None:
        self.form: Form = read_form(Source(function, "gnnc.training"))
        self.given, self.options = given, Options(**given)
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Train with these arguments, and return what the function returns.

        Raises:
            TypeError: the optimizer is none of torch's; also what the function itself raises.
        """
        begun = self.begin(self.given, args, kwargs)
        return begun.functions.train(begun.step)

    def begin(
        self, options: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Begun:
        """Run what stands in front of the loop, for a call's arguments; its step has these options.

        Raises:
            TypeError: the optimizer is none of torch's; also what the function itself raises.
        """
        form = self.form
        names = run_setup(form, args, kwargs)
        functions = functions_of(form, names, is_array)
        optimizer = names.get(form.optimizer)
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{form.optimizer} is {type(optimizer).__name__}: in front of the loop it has to "
                "become a torch.optim.Optimizer"
            )
        step = train_step(functions.loss, optimizer, **options)
        return Begun(names, functions, step)

    def set_modes(self, begun: Begun) -> None:
        """Run what sets modules to training at the top of the loop."""
        for owner, method in modes_of(self.form):
            getattr(begun.names[owner], method)()


def is_array(x: object) -> bool:
    """Whether a value is an array of the data: a tensor, not a parameter of a model."""
    return isinstance(x, Tensor) and not x.requires_grad
