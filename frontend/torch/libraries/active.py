"""Whether substitutes for functions of libraries are traced: while one of our captures runs."""

from __future__ import annotations

from threading import Lock
from types import FunctionType

ACTIVE = False
_users = 0
_lock = Lock()


class Activated:
    """Substitutes are traced inside; nests. The flag is one for all threads, as Dynamo cannot guard
    a thread's own: another that compiles something else meanwhile gets leaves too, which run."""

    def __enter__(self) -> None:
        global ACTIVE, _users
        with _lock:
            _users += 1
            ACTIVE = True

    def __exit__(self, *raised: object) -> None:
        global ACTIVE, _users
        with _lock:
            _users -= 1
            ACTIVE = _users > 0


activated = Activated()


def is_active() -> bool:
    """Every substitute asks first, so code compiled by others keeps the library's own bodies;
    Dynamo guards on the answer."""
    return ACTIVE


def clone(f: FunctionType) -> FunctionType:
    """The same function under another identity, which Dynamo does not replace again."""
    other = FunctionType(
        f.__code__, f.__globals__, f.__name__ + "_original", f.__defaults__, f.__closure__
    )
    other.__kwdefaults__ = f.__kwdefaults__
    other.__dict__.update(f.__dict__)  # of one that is decorated, what was
    return other
