"""`python -m tests.hunt 0-999`: hunts a range of seeds; `show 17` prints the program of a seed;
`run file.py` judges a program in a file; `shrink 17 'kind'` makes it small."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .hunt import MODES, hunt, prepare, program_of, shrunk, smallest, summary
from .judge import judge
from .program import Program


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hunt", description=__doc__)
    parser.add_argument("what", help="a range of seeds, or: show, run, shrink")
    parser.add_argument("rest", nargs="*", help="of show: a seed; run: a file; shrink: seed, kind")
    parser.add_argument("--folder", type=Path, default=Path(".hunt"), help="logs and failures")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--shrink", type=int, default=1, help="programs of each kind made small")
    parser.add_argument("--seconds", type=float, default=90, help="time to make one small")
    parser.add_argument("--mode", choices=MODES, default="interpreted", help="of the other verbs")
    options = parser.parse_args()
    compiled = options.mode == "compiled"
    if options.what == "show":
        print(program_of(int(options.rest[0]), options.mode))
        return 0
    if options.what == "run":
        prepare(options.folder.resolve())
        verdict = judge(Program.parse(Path(options.rest[0]).read_text()), compiled)
        for d in verdict.differences:
            print(f"call {d.call}: {d.kind}: {d.detail}")
        print(verdict.where, *verdict.fallbacks, sep="\n  ")
        return bool(verdict.differences)
    if options.what == "shrink":
        prepare(options.folder.resolve())
        print(smallest(int(options.rest[0]), options.mode, options.rest[1], options.seconds))
        return 0
    first, last = map(int, options.what.split("-"))
    records = hunt(first, last, options.folder, options.jobs)
    print(summary(records), flush=True)
    for path in shrunk(records, options.folder, options.shrink, options.seconds):
        print(f"\n{path}\n{path.read_text()}", flush=True)
    return any(r["kinds"] for r in records)


if __name__ == "__main__":
    sys.exit(main())
