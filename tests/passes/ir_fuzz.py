"""Mutated programs: what parser, verifier, passes and printer must refuse with a diagnostic.

A seed draws a program of the corpus, changes it in one to four places, and runs it through one of
several lists of passes. Whatever it has become, it is either taken or refused with a message.
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from io import StringIO
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException, ParseError

from gnnc.dialects.inter import Inter
from gnnc.dialects.intra import Intra
from gnnc.dialects.meaning.check import parse_module
from gnnc.frontend.located import LocatedParser
from gnnc.frontend.targets import printed
from gnnc.passes import get_all_passes
from gnnc.passes.driver.pipelines import passes_of, pipeline
from gnnc.passes.driver.runner import PassRunner, module_text
from gnnc.passes.targets.openmp import OPENMP
from gnnc.passes.targets.reference import REFERENCE

from .programs import PROGRAMS as LAYERS
from .random_programs import Drawer
from .small_programs import PROGRAMS as SMALL

FILECHECK = Path(__file__).parents[2] / "filecheck"
WRONG = re.compile("verify|refuses|invalid")
"""Files of programs that are refused as they are."""
REPORTED = "reported by"
"""How the note of a refusal begins that names the pass."""
SECONDS = 20
"""A mutant that takes longer hangs."""


class Hang(Exception):
    """Nothing came back in time."""


# ---------------------------------------------------------------- what is mutated


@cache
def corpus() -> tuple[str, ...]:
    """Texts of single modules: those of the tests, drawn ones, lowered ones, in both syntaxes."""
    plain = [*LAYERS.values(), *SMALL.values()]
    plain += [module_text(Drawer(seed, 12).module()) for seed in range(8)]
    lowered = [text for name in ("gcn", "rgat", "hetero") for text in stages(LAYERS[name])]
    lowered += [text for name in _LOWERED for text in stages(SMALL[name])[1:]]
    paths = [p for p in sorted(FILECHECK.rglob("*.mlir")) if not WRONG.search(p.stem)]
    files = [part for path in paths for part in modules_of(path)]
    written = [*plain, *lowered, *files]
    return (*written, *(text for text in map(generic, written[::5]) if text is not None))


_LOWERED = ("stack and part", "else", "as rows and back", "linear of heads", "shapes", "positions")


def modules_of(path: Path) -> list[str]:
    """The modules of a test file, without its comments."""
    text = re.sub(r"^\s*//(?! -----).*\n", "", path.read_text(), flags=re.MULTILINE)
    return [part.strip() + "\n" for part in text.split("// -----") if part.strip()]


def stages(text: str) -> list[str]:
    """A program after some of the passes that make a whole module of it."""
    module = parse_module(text)
    passes = passes_of(pipeline(training=True, target=OPENMP.on(32)))
    names = ("plan-saves", "split-phases", "lower-to-intra", "fuse-traversals", "plan-memory")
    out: list[str] = []
    for p in passes:
        p.apply(Context(), module)
        if p.name in names:
            out.append(module_text(module))
    return out


def generic(text: str) -> str | None:
    """A module in MLIR's generic syntax, which no parser of ours reads; None where it is wrong."""
    try:
        module = parse_module(text)
    except (DiagnosticException, ParseError):
        return None
    out = StringIO()
    Printer(stream=out, print_generic_format=True).print_op(module)
    return out.getvalue() + "\n"


# ---------------------------------------------------------------- mutations

TOKEN = re.compile(
    r"""[%@^!#]?[A-Za-z_][\w.]*|%\d+|-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+|"[^"\n]*"|->|\s+|."""
)
TYPE = re.compile(r"!inter\.\w+<[^<>]*>|(?:memref|vector)<[^<>]*>|#intra\.domain<[^<>]*>")
DEFINED = re.compile(r"(%\w+) = [^\n]* : ([^\n]+)|(%\w+) ?: (!inter\.\w+<[^<>]*>)")
NUMBERS = "0 1 -1 2 3 7 64 1000000007 99999999999999999999 0.5 1.0 -0.0 1e300 true nan 4294967296"
WORDS = """f32 f64 i32 i64 i1 index unit mono onto partial src dst sum mean max min mul last N g R
parts eq pairs else over along xf32 bf16 none inter.needs_grad inter.name forward backward"""
ATTRIBUTES = """inter.needs_grad; inter.name = "a"; inter.name; inter.cotangent; no_loops;
first = 3; last = 1; inter.prepare; inter.saved; inter.grad = "w"; inter.recompute; zero = 0.0;
remaining; checked; dim = -1; p = 2.0; site = -1; kind = 3; kind = "last"; zero_ties; every;
schedule = {}; step = 0; spec = "k,k->k"; inter.update = "adam"; inter.loss"""
FAMILIES = """sum mean max min mul last; src dst rel; f32 f64; i32 i64; add sub mul div maximum pow;
relu exp neg tanh sigmoid log sqrt rsqrt sign floor stop; gt lt ge eq ne le; N R g unit; mono onto
partial; forward backward prepare main; row_reduce reduce; at index; filter loops; offsets members;
input output alloc; load lookup; traverse segment; slice transpose reshape; matmul outer dot"""
"""Words that stand for each other: what they make is wrong for a reason that lies deeper."""

Mutation = Callable[[random.Random, str], str]


def kind_of(token: str) -> str:
    """Tokens of one kind stand for each other."""
    first = token[0]
    if first.isalpha() or first == "_":
        return "word"
    return "number" if first.isdigit() or token[:2].strip("-").isdigit() else first


def splice(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def a_token(r: random.Random, text: str) -> str:
    """One token goes, comes twice, or becomes another of its kind."""
    found = [m for m in TOKEN.finditer(text) if not m[0].isspace()]
    if not found:
        return text
    m = r.choice(found)
    same = [t[0] for t in found if kind_of(t[0]) == kind_of(m[0])]
    pool = {"word": WORDS, "number": NUMBERS}.get(kind_of(m[0]), "").split()
    new = r.choice(("", f"{m[0]} {m[0]}", *[r.choice(same) for _ in range(4)]))
    if pool and r.random() < 0.5:
        new = r.choice(pool)
    return splice(text, m.start(), m.end(), new)


def a_number(r: random.Random, text: str) -> str:
    found = list(re.finditer(r"-?\b\d+(?:\.\d+)?", text))
    if not found:
        return text
    m = r.choice(found)
    return splice(text, m.start(), m.end(), r.choice(NUMBERS.split()))


def a_value(r: random.Random, text: str) -> str:
    """An operand becomes another value of the program."""
    found = list(re.finditer(r"%[\w]+", text))
    if not found:
        return text
    m = r.choice(found)
    return splice(text, m.start(), m.end(), r.choice(found)[0])


def a_twin(r: random.Random, text: str) -> str:
    """An operand becomes another value of its type: types stay right, what is computed changes."""
    types = {m[1] or m[3]: m[2] or m[4] for m in DEFINED.finditer(text)}
    found = [m for m in re.finditer(r"%\w+(?! =| ?:)", text) if m[0] in types]
    if not found:
        return text
    m = r.choice(found)
    return splice(text, m.start(), m.end(), r.choice([v for v in types if types[v] == types[m[0]]]))


def a_relative(r: random.Random, text: str) -> str:
    """A word becomes another one of its family."""
    family = r.choice(FAMILIES.replace("\n", " ").split("; ")).split()
    found = list(re.finditer(rf"(?<![\w%])(?:{'|'.join(family)})(?!\w)", text))
    if not found:
        return text
    m = r.choice(found)
    return splice(text, m.start(), m.end(), r.choice(family))


def a_type(r: random.Random, text: str) -> str:
    """A type becomes another one of this or of another program."""
    found = list(TYPE.finditer(text))
    if not found:
        return text
    m = r.choice(found)
    others = found if r.random() < 0.7 else list(TYPE.finditer(r.choice(corpus()))) or found
    return splice(text, m.start(), m.end(), r.choice(others)[0])


def every(r: random.Random, text: str) -> str:
    """A word or a number becomes another one wherever it stands."""
    words = sorted({m[0] for m in TOKEN.finditer(text) if kind_of(m[0]) in ("word", "number")})
    if not words:
        return text
    old = r.choice(words)
    new = r.choice((*NUMBERS.split(), *WORDS.split(), *words))
    return re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.])", lambda _: new, text)


def widths(r: random.Random, text: str) -> str:
    """A width or an element type changes wherever it stands in a type."""
    found = sorted(set(re.findall(r"\d+(?=x)|(?<=x)[fi]\d+|(?<= )[fi]\d+(?=>)", text)))
    if not found:
        return text
    old = r.choice(found)
    pool = ("1", "0", "2", "33", "1024") if old.isdigit() else ("f32", "f64", "i32", "i64", "i1")
    new = r.choice(pool)
    pattern = rf"\b{old}(?=x)" if old.isdigit() else rf"(?<=x){old}\b|(?<= ){old}(?=>)"
    return re.sub(pattern, new, text)


def an_attribute(r: random.Random, text: str) -> str:
    """One more entry in a dictionary, or a dictionary goes."""
    found = list(re.finditer(r"\{[^{}\n]*\}", text))
    attribute = r.choice(ATTRIBUTES.replace("\n", " ").split("; "))
    if found and r.random() < 0.7:
        m = r.choice(found)
        new = ["", "{}", m[0][:-1] + (", " if m[0] != "{}" else "") + attribute + "}"]
        return splice(text, m.start(), m.end(), r.choice([*new, new[2], r.choice(found)[0]]))
    places = [m.end() for m in re.finditer(r"inter\.rows<[^<>]*>(?=[,)])", text)]
    if not places or r.random() < 0.2:
        places = [m.start() for m in re.finditer(r" : |,|\)", text)] or [0]
    at = r.choice(places)
    return splice(text, at, at, f" {{{attribute}}}")


def a_line(r: random.Random, text: str) -> str:
    """A line goes, comes twice, moves, or comes from another program."""
    lines = text.splitlines(keepends=True) or ["\n"]
    i, j = r.randrange(len(lines)), r.randrange(len(lines))
    match r.randrange(5):
        case 0:
            del lines[i]
        case 1:
            lines.insert(j, lines[i])
        case 2:
            lines[i], lines[j] = lines[j], lines[i]
        case 3:
            lines.insert(j, r.choice(r.choice(corpus()).splitlines(keepends=True)))
        case _:  # once more under another name, and used
            made = re.match(r"\s*%(\w+) =", lines[i])
            if made:
                new = lines[i].replace(f"%{made[1]} =", "%again =")
                rest = "".join(lines[i + 1 :]).split(f"%{made[1]}")
                if len(rest) > 1:
                    k = r.randrange(1, len(rest))
                    after = f"%{made[1]}".join(rest[:k]) + "%again" + f"%{made[1]}".join(rest[k:])
                    return "".join(lines[: i + 1]) + new + after
    return "".join(lines)


def an_op(r: random.Random, text: str) -> str:
    """An op becomes another of its dialect."""
    found = list(re.finditer(r"(?:inter|intra)\.[a-z_]+\b(?! ?=)", text))
    if not found:
        return text
    m = r.choice(found)
    dialect = {"inter": Inter, "intra": Intra}[m[0].split(".")[0]]
    return splice(text, m.start(), m.end(), r.choice([op.name for op in dialect.operations]))


MUTATIONS: tuple[Mutation, ...] = (
    *(a_twin,) * 4,
    *(a_relative,) * 5,
    *(an_attribute,) * 3,
    *(widths,) * 2,
    *(a_value,) * 2,
    *(a_line,) * 2,
    a_token,
    a_number,
    a_type,
    every,
    an_op,
)


def mutant(seed: int) -> str:
    """The text that a seed draws."""
    r = random.Random(seed)
    text = r.choice(corpus())
    for _ in range(r.choice((1, 1, 1, 2, 2, 3, 4))):
        text = r.choice(MUTATIONS)(r, text) or " "
    return text


# ---------------------------------------------------------------- the check


@contextmanager
def in_time(seconds: float) -> Generator[None]:
    """Raises Hang where the block takes longer."""

    def stop(*_: object) -> None:
        raise Hang(f"nothing came back in {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)  # of this process: others may be busy
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@cache
def whole(training: bool) -> tuple[ModulePass, ...]:
    """All passes in order."""
    return tuple(passes_of(pipeline(training=training, target=OPENMP.on(32))))


def passes_for(text: str) -> tuple[ModulePass, ...]:
    """The pipeline that fits a program, as far as it is still before it."""
    passes = whole("needs_grad" in text or "intra." in text)
    names = [p.name for p in passes]
    if "intra." in text:
        return passes[names.index("fuse-traversals") :]
    return passes[names.index("lower-to-intra") :] if "@forward" in text else passes


@cache
def single_passes(lowered: bool) -> tuple[tuple[ModulePass, ...], ...]:
    """Each pass alone: those of programs on buffers, or all."""
    names = list(get_all_passes())
    if lowered:
        names = names[names.index("lower-to-intra") :]
    return tuple(tuple(passes_of(text)) for text in (*names, "canonicalize", "cse", "dce"))


def parsed(text: str) -> ModuleOp:
    """A module as gnn-opt reads it. Raises DiagnosticException and ParseError."""
    ctx = Context()
    for dialect in (Builtin, Func, Inter, Intra):
        ctx.load_dialect(dialect)
    return LocatedParser(ctx, text, "mutant").parse_module()


def run(text: str, passes: Sequence[ModulePass]) -> str:
    """Who refuses a text: "parser", "verifier", a pass, "printer", or "" where nobody does.

    Raises what is no diagnostic.
    """
    where = "parser"
    try:
        module = parsed(text)
        where = "verifier"
        PassRunner(Context(), passes).run(module)
        where = "printer"
        for target in (REFERENCE, OPENMP):  # the first needs no schedule
            printed(module, target)
    except (DiagnosticException, ParseError) as error:
        assert str(error).strip(), "a diagnostic says something"
        notes = [n.split("`")[1] for n in getattr(error, "__notes__", ()) if n.startswith(REPORTED)]
        return notes[0] if notes else where
    return ""


def check(seed: int) -> list[str]:
    """Runs the mutant of a seed through a pipeline and three single passes; who refused it."""
    r = random.Random(~seed)
    text = mutant(seed)
    ends: list[str] = []
    with in_time(SECONDS):
        alone = single_passes("intra." in text)
        for passes in (passes_for(text), *r.sample(alone, 3)):
            ends.append(run(text, passes))
            if ends[-1] in ("parser", "verifier"):
                break
    return ends
