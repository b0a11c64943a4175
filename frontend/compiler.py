"""From an imported module to a loaded program: runs the pipeline, or finds its result in the
cache.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from ..codegen.common.artifact import build_artifact
from ..passes.driver.pipelines import Between, passes_of, pipeline
from ..passes.driver.runner import VERIFY_VARIABLE, Dump, PassCrash, PassRunner, module_text
from ..passes.targets import Target, target_named
from ..runtime import cache
from ..runtime.cpu import toolchain
from ..runtime.program import Program
from .targets import default_target, printed

_PACKAGE = Path(__file__).parent.parent
_COMPILER_FOLDERS = ("codegen", "dialects", "passes", "frontend")
HASHED = {".py", ".h", ".c", ".cuh"}
"""Suffixes of the compiler's source and of the texts that it prints."""


BACKENDS = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Options:
    """What a user may choose.

    Attributes:
        fullgraph: raise where a part, or a call (with tensors on another device, say), cannot be
            compiled instead of running it in torch.
        march: value of the C compiler's -march; None means `$GNNC_MARCH`, else the machine's own.
        passes: a pipeline as gnn-opt spells it, in place of the standard one.
        sanitize: build with the address and undefined-behaviour sanitizers.
        profile: let the program measure the seconds of each kernel (`gnnc bench kernels`).
        denormals: keep denormal numbers, which kernels take for 0 by default: they are slow on x86.
            Of exp, log and their kin they may be 0 all the same.
        sparse_features: take dense arguments that are mostly zeros as sparse matrices where no more
            than products is computed with them, and these cost less so (frontend/torch/sparse), on
            all ranks or on none.
        hoist_inputs: compute what follows from large inputs and the graph alone (the aggregation of
            features) once, and again where these change, as their version counters tell; with
            features that are others in each of many calls this ends by itself.
        remote_reads: let kernels on GPUs read rows of other ranks where they lie, instead of
            messages, where those of all ranks can reach the memory of all (docs/distributed.md).
        target: what programs on the CPU are printed for (passes/targets); `$GNNC_TARGET` where it
            is set, else openmp.
        backend: "auto" runs a program where its tensors are, on the CPU or a CUDA device; "cpu"
            leaves tensors on devices to torch, "cuda" takes no others.

    Raises:
        ValueError: there is no such target or backend.
    """

    fullgraph: bool = False
    march: str | None = None
    passes: str | None = None
    sanitize: bool = False
    profile: bool = False
    denormals: bool = False
    sparse_features: bool = True
    hoist_inputs: bool = True
    remote_reads: bool = True
    target: str = field(default_factory=default_target)
    backend: str = "auto"

    def __post_init__(self) -> None:
        target_named(self.target)
        if self.backend not in BACKENDS:
            raise ValueError(f"backend is {', '.join(BACKENDS)}, not {self.backend!r}")

    def on(self, device: str) -> Options:
        """The options for tensors on a device, as torch spells it."""
        return self if device == "cpu" else replace(self, target="cuda")


def own_hash() -> str:
    """A hash of the compiler's own source, so that another gnnc does not find this one's
    programs.
    """
    return source_hash(_COMPILER_FOLDERS)


@functools.cache
def source_hash(folders: tuple[str, ...] = (*_COMPILER_FOLDERS, "runtime")) -> str:
    """A hash of the source in some folders, by default of all that runs a script of a user's."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((_PACKAGE / folder).rglob("*")):
            if path.suffix in HASHED:
                digest.update(path.relative_to(_PACKAGE).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_module(
    module: ModuleOp, training: bool, options: Options, ranks: Between | None = None
) -> Program:
    """Compile an imported module (it is consumed), with `ranks` one that is partitioned, whose rows
    cross so.

    Raises:
        PassFailedException: a pass refused the program, with the reason.
        PassCrash: a bug in gnnc, as an op that does not verify; the reproducer's path is in the
            message.
        NoCompiler, CompileError: from the tool chain.
    """
    found = toolchain.compiler(options.march)
    target = target_named(options.target).on(found.vector_bytes)
    specification = options.passes or pipeline(training, target, ranks)
    parts = (module_text(module), specification, target.name, found.target, own_hash())
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    dumps = Dump.from_environment("training" if training else "inference")

    def made() -> bytes:
        with collector_paused():
            return run_pipeline(module, specification, target, dumps).encode()

    if dumps:
        artifact = made()
        cache.put_bytes(key, artifact)
    else:
        artifact = cache.get_or_make(key, made)
    program = Program(
        artifact.decode(),
        march=options.march,
        sanitize=options.sanitize,
        profile=options.profile,
        denormals=options.denormals,
    )
    for dump in dumps:
        dump.write("program.c", program.source)
        if device := program.data["device"]:
            dump.write("program.cu", device)
    return program


@contextmanager
def collector_paused() -> Generator[None]:
    """Without the collector of reference cycles: passes make objects by the hundred thousand, for
    which it would look through all of the process, torch's million among them, again and again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def run_pipeline(module: ModuleOp, specification: str, target: Target, dumps: list[Dump]) -> str:
    """Run the passes and print the result as an artifact for a target.

    Raises:
        PassFailedException: a pass refused the program.
        PassCrash: a pass, or what prints the result, failed.
    """
    run_passes(module, specification, dumps)
    try:
        return artifact_of(module, target)
    except PassFailedException:
        raise
    except Exception as error:
        what = f"printing C raised {type(error).__name__}: {error}"
        raise PassCrash(what, "print", None) from error


def run_passes(module: ModuleOp, specification: str, dumps: Sequence[Dump] = ()) -> None:
    """Run the passes that a specification names.

    Raises:
        PassFailedException: a pass refused the program.
        PassCrash: a pass failed.
    """
    ctx = Context()
    load_dialects(ctx)
    PassRunner(
        ctx,
        passes_of(specification),
        dumps,
        verify_each=bool(dumps or os.environ.get(VERIFY_VARIABLE)),
        reproducer_folder=Path.cwd(),
        made_by="the importer",
    ).run(module)


def artifact_of(module: ModuleOp, target: Target) -> str:
    """A lowered module printed for a target, with all that the runtime needs to know of it.

    Raises:
        PassFailedException: the target cannot print it, or its structure has no steps.
    """
    return build_artifact(module, printed(module, target), target.name, target.runtime)


def load_dialects(ctx: Context) -> None:
    """Make the dialects that passes may meet known."""
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func

    from ..dialects.inter import Inter
    from ..dialects.intra import Intra

    for dialect in (Builtin, Func, Inter, Intra):
        ctx.load_dialect(dialect)
