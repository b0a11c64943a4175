"""The operators of an epoch, found by what they do and by what they keep busy."""

from collections.abc import Callable
from enum import StrEnum

# Payloads belong to the operators: what one phase returns, the next one is called with.
Operator = Callable[[object], object]


class Phase(StrEnum):
    """What happens to a mini-batch, in the order in which it happens."""

    PREPARE = "prepare"
    MOVE = "move"
    TRAIN = "train"


class Resource(StrEnum):
    """What an operator keeps busy while it runs."""

    CPU = "cpu"
    LINK = "link"
    ACCELERATOR = "accelerator"


CPU = frozenset({Resource.CPU})
LINK = frozenset({Resource.LINK})
ACCELERATOR = frozenset({Resource.ACCELERATOR})
# An accelerator that prepares a batch reads the graph and the features over the link.
ACCELERATOR_AND_LINK = ACCELERATOR | LINK

_KNOWN = {
    (Phase.PREPARE, CPU),
    (Phase.MOVE, LINK),
    (Phase.PREPARE, ACCELERATOR_AND_LINK),
    (Phase.TRAIN, ACCELERATOR),
}


class Registry:
    """The four operators of a schedule, by (phase, resources).

    - prepare on the CPU: called with a batch's index, returns the batch in host memory;
    - move over the link: called with that batch, returns it in the accelerator's memory;
    - prepare on accelerator and link: called with a batch's index, returns it in the
      accelerator's memory;
    - train on the accelerator: called with a batch there, returns the step's result.

    What an operator returns has to be its own: a view of a buffer that the next batch fills
    again would change while it waits (the executor's checksums find this).
    """

    def __init__(self) -> None:
        self._operators: dict[tuple[Phase, frozenset[Resource]], Operator] = {}

    def register(self, phase: str, resources: frozenset[Resource], operator: Operator) -> None:
        """Raises ValueError for a pair that no schedule uses or that is taken."""
        key = (Phase(phase), frozenset(resources))
        if key not in _KNOWN:
            raise ValueError(f"phase, resources: no schedule runs {_name(*key)}")
        if key in self._operators:
            raise ValueError(f"phase, resources: {_name(*key)} is registered already")
        self._operators[key] = operator

    def get(self, phase: str, resources: frozenset[Resource]) -> Operator:
        """Raises KeyError, which names the operator, where none is registered."""
        key = (Phase(phase), frozenset(resources))
        if key not in self._operators:
            raise KeyError(f"no operator is registered for {_name(*key)}")
        return self._operators[key]


def _name(phase: Phase, resources: frozenset[Resource]) -> str:
    return f"{phase} on {' and '.join(sorted(resources)) or 'nothing'}"
