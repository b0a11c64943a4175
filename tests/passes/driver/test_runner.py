"""Runs of passes: order, verification, refusals, crashes, reproducers, dumps, times."""

from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects, test
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32, i64
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from gnnc.passes.driver.runner import (
    Dump,
    PassCrash,
    PassRunner,
    Times,
    Watcher,
    pipeline_text,
    reproducer_pipeline,
)

TEXT = '"test.op"() {marks = []} : () -> ()'


@dataclass(frozen=True)
class Mark(ModulePass):
    """Puts its text on the module."""

    name = "mark"
    text: str = "a"
    times: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _ in range(self.times):
            old = op.attributes.get("marks", StringAttr(""))
            assert isinstance(old, StringAttr)
            op.attributes["marks"] = StringAttr(old.data + self.text)


@dataclass(frozen=True)
class Crash(ModulePass):
    name = "crash"
    factors: tuple[int, ...] = (2,)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["half"] = StringAttr("done")
        raise IndexError("list index out of range")


@dataclass(frozen=True)
class Refuse(ModulePass):
    name = "refuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise PassFailedException("no such graph")


@dataclass(frozen=True)
class Break(ModulePass):
    name = "break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        a, b = test.TestOp(result_types=[i32]), test.TestOp(result_types=[i64])
        op.body.block.add_ops([a, b, AddiOp(a.res[0], b.res[0], i32)])


PASSES: dict[str, type[ModulePass]] = {p.name: p for p in (Mark, Crash, Refuse, Break)}


def context() -> Context:
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    return ctx


def module() -> ModuleOp:
    return Parser(context(), TEXT).parse_module()


def marks(of: ModuleOp) -> str:
    found = of.attributes["marks"]
    assert isinstance(found, StringAttr)
    return found.data


@dataclass
class Record(Watcher):
    events: list[str] = field(default_factory=list[str])

    def begin(self, module: ModuleOp) -> None:
        self.events.append("begin")

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        self.events.append(f"before {pass_.spec()}")

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        self.events.append(f"after {marks(module)}")


def test_order_and_events():
    record, m = Record(), module()
    PassRunner(context(), [Mark("a"), Mark("b", 2)], [record]).run(m)
    assert marks(m) == "abb"
    second = 'before mark{text="b" times=2}'
    assert record.events == ["begin", "before mark", "after a", second, "after abb"]


def test_input_is_verified():
    m = module()
    Break().apply(context(), m)
    with pytest.raises(VerifyException):
        PassRunner(context(), []).run(m)
    PassRunner(context(), [Mark()], verify=False).run(m)


def test_input_that_no_user_wrote_is_a_crash_of_what_made_it():
    m = module()
    Break().apply(context(), m)
    with pytest.raises(PassCrash, match="the writer made a module that does not verify"):
        PassRunner(context(), [], made_by="the writer").run(m)


@dataclass(frozen=True)
class Misbuild(ModulePass):
    """Makes an op that does not verify as soon as it is made."""

    name = "misbuild"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise VerifyException("no such rows")


def test_an_op_that_a_pass_makes_wrongly_is_a_crash():
    with pytest.raises(PassCrash, match="pass `misbuild` raised VerifyException: no such rows"):
        PassRunner(context(), [Misbuild()]).run(module())


def test_refusal_names_the_pass_and_leaves_no_file(tmp_path: Path):
    with pytest.raises(PassFailedException, match="no such graph") as error:
        PassRunner(context(), [Mark(), Refuse()], reproducer_folder=tmp_path).run(module())
    assert error.value.__notes__ == ["reported by pass `refuse`"]
    assert list(tmp_path.iterdir()) == []


def test_crash_without_reproducer():
    with pytest.raises(PassCrash, match="pass `crash` raised IndexError: list index") as error:
        PassRunner(context(), [Crash()]).run(module())
    assert error.value.reproducer is None
    assert isinstance(error.value.__cause__, IndexError)


@pytest.mark.parametrize("culprit", [Crash((2, 3)), Break()])
def test_reproducer(tmp_path: Path, culprit: ModulePass):
    passes = [Mark("x"), Mark('"y"'), culprit, Mark("z")]
    with pytest.raises(PassCrash) as error:
        PassRunner(context(), passes, reproducer_folder=tmp_path / "new").run(module())
    path = error.value.reproducer
    assert path is not None
    assert error.value.pass_name == culprit.name
    assert f"gnn-opt {path}" in str(error.value)

    text = path.read_text()
    assert reproducer_pipeline(text) == pipeline_text(passes[2:])
    before = Parser(context(), text).parse_module()
    assert marks(before) == 'x"y"'
    assert "half" not in before.attributes
    with pytest.raises(PassCrash):
        PassRunner(context(), passes[2:]).run(before)


@dataclass(frozen=True)
class Mend(ModulePass):
    """Cannot read what `Break` leaves behind."""

    name = "mend"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(x, AddiOp) for x in op.body.ops):
            raise PassFailedException("an addition")


@pytest.mark.parametrize("after", [[], [Mark("z")], [Crash()], [Mend()]])
def test_failed_runs_are_searched_for_the_culprit(tmp_path: Path, after: list[ModulePass]):
    passes = [Mark("x"), Break(), *after]
    with pytest.raises(PassCrash, match="`break` left a module that does not verify") as error:
        PassRunner(context(), passes, verify_each=False, reproducer_folder=tmp_path).run(module())
    assert error.value.pass_name == "break"
    (path,) = tmp_path.iterdir()
    assert reproducer_pipeline(path.read_text()) == pipeline_text(passes[1:])


def test_refusals_stay_refusals_where_only_the_end_is_verified():
    with pytest.raises(PassFailedException, match="no such graph") as error:
        PassRunner(context(), [Mark(), Refuse()], verify_each=False).run(module())
    assert error.value.__notes__ == ["reported by pass `refuse`"]


def test_other_files_are_no_reproducers():
    assert reproducer_pipeline('// RUN: gnn-opt %s -p "cse"\n' + TEXT) is None


def test_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GNNC_DUMP", str(tmp_path))
    for _ in range(2):
        (dump,) = Dump.from_environment("gcn")
        PassRunner(context(), [Mark("a"), Mark("b")], [dump]).run(module())
        dump.write("kernels.c", "int x;\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gcn-0", "gcn-1"]
    files = {p.name: p.read_text() for p in (tmp_path / "gcn-1").iterdir()}
    assert sorted(files) == ["00-input.mlir", "01-mark.mlir", "02-mark.mlir", "03-kernels.c"]
    assert marks(Parser(context(), files["02-mark.mlir"]).parse_module()) == "ab"


def test_no_dump(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GNNC_DUMP", raising=False)
    assert Dump.from_environment("gcn") == []


def test_times():
    times, out = Times(), StringIO()
    PassRunner(context(), [Mark("a"), Mark("b")], [times]).run(module())
    assert [name for name, _ in times.seconds] == ["mark", "mark"]
    times.report(out)
    assert [line.split()[-1] for line in out.getvalue().splitlines()] == ["mark", "mark", "total"]
