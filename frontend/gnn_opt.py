"""`gnn-opt`: reads IR, runs passes on it, and prints it or the source text of a target.

xDSL's driver with our dialects, passes and targets, and with the tools of
passes/driver/runner.py: dumps, times, checks that passes keep the meaning, and reproducers of
crashes. docs/gnn-opt.md describes its use. Exit status: 0 done, 1 the program was refused, 2 wrong
usage, 3 a pass crashed or changed the meaning of the program.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO

from typing_extensions import override
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from .. import __version__
from ..dialects import get_all_dialects
from ..passes import get_all_passes
from ..passes.driver.runner import (
    DUMP_VARIABLE,
    ChangedMeaning,
    Dump,
    PassCrash,
    PassRunner,
    Times,
    Watcher,
    module_text,
    reproducer_pipeline,
)
from .located import LocatedParser, located_errors
from .targets import get_all_targets

REFUSED = 1
WRONG_USAGE = 2
CRASHED = 3

_COMMON = ("canonicalize", "cse", "dce")


class WrongUsage(Exception):
    """The command line asks for what does not exist."""


class GnnOptMain(xDSLOptMain):
    version_format = f"gnn-opt {__version__}, on xdsl {{xdsl_version}}"

    def __init__(self, args: Sequence[str]):
        self._asked_for_help = not {"-h", "--help"}.isdisjoint(args)
        super().__init__(description="Runs compiler passes on gnnc's IR.", args=args)

    @override
    def register_all_dialects(self) -> None:
        super().register_all_dialects()
        for name, factory in get_all_dialects().items():
            self.ctx.register_dialect(name, factory)

    @override
    def register_all_passes(self) -> None:
        super().register_all_passes()
        for name, factory in get_all_passes().items():
            self.register_pass(name, factory)

    @override
    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets.update(get_all_targets())

    @override
    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        # xDSL's help for -p names every pass: ours will do, the others are listed below.
        every = self.available_passes
        self.available_passes = get_all_passes()
        super().register_all_arguments(arg_parser)
        self.available_passes = every
        arg_parser.prog = "gnn-opt"
        arg_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        arg_parser.add_argument(
            "--check-passes",
            action="store_true",
            help="interpret the module before and after every pass on random multigraphs, "
            "and stop at the first pass that changes a result",
        )
        arg_parser.add_argument(
            "--reproducer-folder",
            type=Path,
            default=Path(),
            metavar="DIR",
            help="where a crash of a pass leaves the file that shows it (here: the working folder)",
        )
        if self._asked_for_help:  # reading the summaries imports every pass
            arg_parser.epilog = self._lists()

    def _lists(self) -> str:
        from ..passes.driver.pipelines import pipeline
        from ..passes.targets import DEFAULT, TARGETS

        passes, targets = get_all_passes(), get_all_targets()
        width = max(map(len, targets))
        others = len(self.available_passes.keys() - passes.keys() - set(_COMMON))
        return "\n\n".join(
            (
                "passes:\n" + _summaries(passes),
                f"passes of xDSL: {', '.join(_COMMON)}, and {others} that xdsl-opt --help lists",
                "targets:\n"
                + _summaries(targets)
                + f"\n  {'mlir':{width}}  The IR itself (the default).",
                "what gnnc.compile runs for training, where vectors have 32 bytes:\n  "
                + pipeline(training=True, target=TARGETS[DEFAULT].on(32)),
                f"{DUMP_VARIABLE}=DIR in the environment writes the IR after every pass to DIR.",
            )
        )

    @override
    def setup_pipeline(self) -> None:
        text = self.args.passes or self._recorded_pipeline() or ""
        passes: list[ModulePass] = []
        for spec in parse_pipeline(text):
            if spec.name not in self.available_passes:
                close = get_close_matches(spec.name, self.available_passes, 1)
                hint = f"did you mean `{close[0]}`?" if close else "gnn-opt --help lists them"
                raise WrongUsage(f"there is no pass `{spec.name}`: {hint}")
            try:
                passes.append(self.available_passes[spec.name]().from_spec(spec))
            except ValueError as error:
                raise WrongUsage(f"pass `{spec.name}`: {error}") from error
        self.pipeline = PassPipeline(tuple(passes))

    def _recorded_pipeline(self) -> str | None:
        """The passes that the input asks for itself, where it is a reproducer."""
        path = self.args.input_file
        if path is None or not Path(path).is_file():
            return None
        return reproducer_pipeline(Path(path).read_text())

    @override
    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        if file_extension != "mlir":
            return super().parse_chunk(chunk, file_extension, start_offset)
        parser = LocatedParser(self.ctx, chunk.read().decode(), self.get_input_name(), start_offset)
        with located_errors():
            return parser.parse_module(not self.args.no_implicit_module)

    @override
    def apply_passes(self, prog: ModuleOp) -> None:
        times = Times()
        label = Path(self.args.input_file).stem if self.args.input_file else "stdin"
        watchers: list[Watcher] = [times, *Dump.from_environment(label)]
        if self.args.print_between_passes:
            watchers.append(PrintBetween(self.pipeline.passes))
        if self.args.check_passes:
            from ..passes.driver.watch_meaning import (
                CheckMeaning,  # and NumPy, which most runs do without
            )

            watchers.append(CheckMeaning(_note, self.args.reproducer_folder))
        runner = PassRunner(
            self.ctx,
            self.pipeline.passes,
            watchers,
            verify=not self.args.disable_verify,
            reproducer_folder=self.args.reproducer_folder,
        )
        with located_errors():
            runner.run(prog)
        if self.args.time_passes:
            times.report(sys.stderr)

    @override
    def output_resulting_program(self, prog: ModuleOp) -> str:
        with located_errors():
            return super().output_resulting_program(prog)


@dataclass
class PrintBetween(Watcher):
    """Prints the module after every pass but the last, whose result is the output anyway."""

    passes: Sequence[ModulePass]

    @override
    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        if pass_ is not self.passes[-1]:
            print(f"// IR after {pass_.name}:\n{module_text(module)}")


def _summaries(factories: Mapping[str, Callable[[], type[ModulePass] | type[Target]]]) -> str:
    """One line for each: its name and the first line of its docstring."""
    width = max((len(name) for name in factories), default=0)
    return "\n".join(
        f"  {name:{width}}  {(factory().__doc__ or '').strip().partition(chr(10))[0]}"
        for name, factory in factories.items()
    )


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _show(error: Exception) -> None:
    """Prints the error, and the line of the input it is about with a mark under the column."""
    print(f"error: {error}", file=sys.stderr)
    location = getattr(error, "location", None)
    if isinstance(location, FileLineColLoc) and Path(location.filename.data).is_file():
        line = Path(location.filename.data).read_text().splitlines()[location.line.data - 1]
        print(f"{line}\n{' ' * (location.column.data - 1)}^", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        if note.startswith("reported by"):  # the others are the whole module
            _note(note)


def main(args: Sequence[str] | None = None) -> int:
    """Runs the driver on `args` (None: the command line) and returns the exit status."""
    try:
        GnnOptMain(sys.argv[1:] if args is None else args).run()
    except PassCrash as error:
        if not isinstance(error, ChangedMeaning):
            traceback.print_exception(error.__cause__)
        print(f"error: {error}", file=sys.stderr)
        return CRASHED
    except (WrongUsage, OSError, ArgSpecParseError) as error:
        print(f"gnn-opt: error: {error}", file=sys.stderr)
        return WRONG_USAGE
    except (DiagnosticException, ParseError) as error:
        _show(error)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
