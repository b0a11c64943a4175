"""What `make demo` runs: GCN trained eagerly and compiled, on a generated graph and on Cora.

Cora is used where its files are found: below $GNNC_DATA, else in `shared/data` beside the checkout,
as planetoid/Cora/raw/ind.cora.*. Arguments are passed on to `gnnc train`.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from gnnc.frontend.cli import main

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def find_cora() -> Path | None:
    """The folder to give PyG as `root`, or None."""
    found = Path(os.environ.get("GNNC_DATA") or BESIDE) / "planetoid"
    return found if (found / "Cora" / "raw").is_dir() else None


def demo(arguments: list[str]) -> int:
    """Runs one or two trainings and returns the exit status."""
    status = main(["train", *arguments])
    cora = find_cora()
    if cora is None:
        print("\nTo train on Cora too, set GNNC_DATA to a folder with planetoid/Cora/raw.")
        return status
    print()
    with tempfile.TemporaryDirectory() as folder:
        # PyG writes what it makes of the raw files beside them, so it gets a copy.
        root = Path(folder) / "planetoid"
        shutil.copytree(cora / "Cora" / "raw", root / "Cora" / "raw", copy_function=shutil.copyfile)
        options = ["--dataset", "Planetoid:Cora", "--root", str(root), "--seeds", "5"]
        return main(["train", *options, *arguments]) or status


if __name__ == "__main__":
    sys.exit(demo(sys.argv[1:]))
