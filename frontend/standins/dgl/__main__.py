"""`python -m gnnc.dgl script.py ..`: runs a script with `gnnc.dgl` where DGL does not import."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from .install import install


def main() -> None:
    """Runs the script as Python would, with the arguments that follow it."""
    parser = argparse.ArgumentParser(prog="python -m gnnc.dgl", description=__doc__)
    parser.add_argument("--always", action="store_true", help="also where DGL does import")
    parser.add_argument("-m", action="store_true", dest="module", help="script names a module")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    install(given.always)
    sys.argv = [given.script, *given.arguments]
    if given.module:
        sys.path[0] = str(Path.cwd())
        runpy.run_module(given.script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(given.script).resolve().parent)
        runpy.run_path(given.script, run_name="__main__")


if __name__ == "__main__":
    main()
