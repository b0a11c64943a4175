"""Support code at the head of printed texts."""

from __future__ import annotations

from importlib.resources import files

_SHARED = "scalar_functions.h"


def header_text(package: str, name: str) -> str:
    """The text of a header in a package, with scalar_functions.h in the place of the line that
    includes it: what is printed is one file.

    Raises:
        FileNotFoundError: the package has no such file.
    """
    shared = (files(__package__ or "") / _SHARED).read_text()
    return (files(package) / name).read_text().replace(f'#include "{_SHARED}"\n', shared)
