"""Mistakes in loop programs: each has its line and column, and says how to mend it."""

import importlib.util
import traceback
from pathlib import Path

import pytest
import torch

import gnnc

PRELUDE = """
import gnnc
from gnnc import DstNodes, Edges, Graph, Nodes, SrcNodes, Weights

@gnnc.program
def f(g: Graph, x: Nodes["in"], w: Edges, W: Weights["etype", "in", "out"],
      V: Weights["ntype", "in", "out"], root: Weights["in", "out"], b: Weights["out"],
      h: Weights["heads"]):
"""

# the body, the text that the error points to, what it says: what is wrong, and what to do
BODIES = [
    (
        'for e in g.edges():\n e["att"] = e.w\nfor e in g.edges():\n e["y"] = e["atr"]\n'
        'return e["y"]',
        'e["atr"]',
        "an edge has no `atr` here: did you mean `att`?",
    ),
    (
        'for n in g.nodes():\n n["y"] = n.z\nreturn n["y"]',
        "n.z",
        "a node has no `z` here: did you mean `x`?|it has: x",
    ),
    (
        'for e in g.edges():\n e["y"] = e.src.x + e.dst.x @ root\nreturn e["y"]',
        "e.src.x + e.dst.x @ root",
        "widths do not fit: in meets out .* declare equal widths by one name",
    ),
    (
        'for e in g.edges():\n e["y"] = e.src.x @ root @ W[e.etype]\nreturn e["y"]',
        "e.src.x @ root @ W[e.etype]",
        "widths do not fit: out @ in x out: its first width has to be the last one of the left",
    ),
    (
        'for n in g.nodes():\n n["y"] = dot(n.x, b)\nreturn n["y"]',
        "dot(n.x, b)",
        "widths do not fit: dot of in and out",
    ),
    (
        'for e in g.edges():\n e["m"] = e.w\nfor n in g.nodes():\n n["y"] = n["m"]\nreturn n["y"]',
        'n["m"]',
        '`m` is a value of edges, a node has many: sum\\(e\\["m"\\] for e in n.incoming_edges',
    ),
    (
        'for e in g.edges():\n e["m"] = e.w\n e["y"] = e.src["m"]\nreturn e["y"]',
        'e.src["m"]',
        '`m` is a value of edges, not of a node: e\\["m"\\]',
    ),
    (
        'for e in g.edges():\n e["y"] = e.x\nreturn e["y"]',
        "e.x",
        '`x` is a value of nodes: e.src\\["x"\\] or e.dst',
    ),
    (
        'for n in g.nodes():\n n["y"] = 0.0\n for e in n.incoming_edges():\n  n["y"] = e.w\n'
        'return n["y"]',
        'n["y"] = e.w',
        'no reduction, each edge would set `y` anew: n\\["y"\\] \\+= .. sums',
    ),
    (
        'for n in g.nodes():\n n["y"] = 1.0\n for e in n.incoming_edges():\n  n["y"] *= e.w\n'
        'return n["y"]',
        'n["y"] *= e.w',
        "no reduction: \\+= sums; max, min and mean are",
    ),
    (
        'for e in g.edges():\n e.dst["y"] += e.w\nreturn e["y"]',
        'e.dst["y"] += e.w',
        "many edges set `y` of one node: sum in a loop over nodes",
    ),
    (
        'for n in g.nodes():\n n["x"] = n.x * 2.0\nreturn n["x"]',
        'n["x"]',
        "`x` is an argument and cannot be set: choose another name",
    ),
    (
        'for n in g.nodes():\n b = n.x\nreturn n["x"]',
        "b",
        "`b` is an argument or a row and cannot be set",
    ),
    (
        'for e in g.edges():\n e["y"] = leaky_rely(e.w, 0.2)\nreturn e["y"]',
        "leaky_rely",
        "`leaky_rely` is no function of the language: did you mean `leaky_relu`?",
    ),
    (
        'for e in g.edges():\n e["y"] = leaky_relu(e.w, e.w)\nreturn e["y"]',
        "leaky_relu(e.w, e.w)",
        "leaky_relu\\(x, slope\\) takes one number as slope",
    ),
    (
        'for e in g.edges():\n e["y"] = maximum(e.w)\nreturn e["y"]',
        "maximum(e.w)",
        "maximum takes 2 values, it is given 1",
    ),
    (
        "while True:\n pass\nreturn 1",
        "while True:",
        "a program has no while: it loops over",
    ),
    (
        'for e in g.edges():\n if e.w > 0:\n  e["y"] = e.w\nreturn e["y"]',
        "if e.w > 0:",
        "a program has no if: where\\(condition, a, b\\)",
    ),
    (
        'for e in g.edges():\n for n in g.nodes():\n  n["y"] = n.x\nreturn e["y"]',
        "for n in g.nodes():",
        "no loop stands inside a loop over edges: sum in a loop over nodes",
    ),
    (
        'for n in g.nodes():\n for m in g.nodes():\n  m["y"] = n.x\nreturn n["y"]',
        "g.nodes()",
        "an inner loop is over n.incoming_edges\\(\\) or n.outgoing_edges\\(\\)",
    ),
    (
        'for i in range(3):\n pass\nreturn n["y"]',
        "range(3)",
        "a loop is over g.edges\\(\\), g.nodes\\(\\)",
    ),
    (
        'for e in g.edge():\n e["y"] = e.w\nreturn e["y"]',
        "g.edge()",
        "a graph has no edge\\(\\): did you mean `edges`?",
    ),
    (
        'for e in g.edges():\n e["y"] = e.w',
        "for e in g.edges():",
        'a program ends in a return of fields: return n\\["name"\\]',
    ),
    (
        'for e in g.edges():\n e["y"] = e.w\nreturn e["y"] + 1.0',
        'e["y"] + 1.0',
        'a program returns fields of rows of its loops: e\\["name"\\]',
    ),
    (
        'for e in g.edges():\n e["y"] = e.src.x @ W[e.ntype]\nreturn e["y"]',
        "e.ntype",
        "an edge has no ntype: did you mean `e.etype`?",
    ),
    (
        'for e in g.edges():\n e["y"] = e.src.x @ W[e.src.ntype]\nreturn e["y"]',
        "e.src.ntype",
        "a block for each etype: did you mean `e.etype`?",
    ),
    (
        'for n in g.nodes():\n n["y"] = n.x @ V[n.etype]\nreturn n["y"]',
        "n.etype",
        "a node has no etype: did you mean `n.ntype`?",
    ),
    (
        'for e in g.edges():\n e["y"] = e.src.x @ W\nreturn e["y"]',
        "W",
        "`W` has a block for each type, choose one: W\\[e.etype\\]",
    ),
    (
        'for e in g.edges():\n e["y"] = e.src.x @ root[e.etype]\nreturn e["y"]',
        "root[e.etype]",
        "`root` is one block for all: write root",
    ),
    (
        'for e in g.edges():\n e["y"] = e.src.x @ W[0]\nreturn e["y"]',
        "0",
        "weights are chosen by a type: write e.etype as index",
    ),
    (
        'for e in g.edges():\n e["y"] = tmp * 2.0\n tmp = e.w\nreturn e["y"]',
        "tmp",
        "`tmp` is used before it is set",
    ),
    (
        'for e in g.edges():\n t = e.w\n e["y"] = t\nfor n in g.nodes():\n n["z"] = t\n'
        'return n["z"]',
        "t",
        "`t` was set in a loop that is over: keep it in a field",
    ),
    (
        'for n in g.nodes():\n n["y"] = n.x\n n["y"] = n.x @ root\nreturn n["y"]',
        'n["y"]',
        "`y` was in and would be out: choose another name for the second",
    ),
    (
        'for n in g.nodes():\n for e in n.incoming_edges():\n  n["sum"] += e.w\nreturn n["sum"]',
        'n["sum"] += e.w',
        '`sum` has no value to add to: begin with n\\["sum"\\] = 0.0',
    ),
    (
        'for n in g.nodes():\n n["y"] = 0.0\n for e in n.incoming_edges():\n'
        '  n["y"] += e.w / n["y"]\nreturn n["y"]',
        'n["y"]',
        "the sum `y` is not complete inside its loop: read it after the loop",
    ),
    (
        'for e in g.edges():\n e["y"] = (e.w > 0.0) + 1.0\nreturn e["y"]',
        "(e.w > 0.0) + 1.0",
        "a comparison is no number: where\\(condition, 1.0, 0.0\\)",
    ),
    (
        'for n in g.nodes():\n n["y"] = edge_softmax(n.x)\nreturn n["y"]',
        "edge_softmax(n.x)",
        "edge_softmax is over the incoming edges of a node: use it in a loop over edges",
    ),
    (
        'for n in g.dst_nodes():\n n["y"] = n.x\nfor e in g.edges():\n e["z"] = e.src["y"]\n'
        'return e["z"]',
        'e.src["y"]',
        "`y` is a value of destination nodes, e.src is one of source nodes: set it in a loop over",
    ),
    (
        'for n in g.nodes():\n n["y"] = x\nreturn n["y"]',
        "x",
        "`x` has a row for each of the nodes: read one, n.x",
    ),
    (
        'for n in g.nodes():\n n["y"] = n.src.x\nreturn n["y"]',
        "n.src",
        "`n` is a node, only edges have .src: loop over the edges",
    ),
    (
        'for n in g.nodes():\n t = n.x\nreturn n["t"]',
        "for n in g.nodes():",
        'this loop sets no field: n\\["name"\\] = ..',
    ),
    (
        'for n in g.nodes():\n n.y = n.x\nreturn n["y"]',
        "n.y",
        'fields are set by name: n\\["y"\\] = ..',
    ),
    (
        'for e in g.edges():\n e["y"] = width("inn") * e.w\nreturn e["y"]',
        'width("inn")',
        "the number behind a width: did you mean `in`?",
    ),
    (
        'for e in g.edges():\n e["y"] = e.w // 2\nreturn e["y"]',
        "e.w // 2",
        "there are the operators",
    ),
    (
        'for e in g.edges():\n e["y"] = e\nreturn e["y"]',
        "e",
        "`e` is a row, not a number: read a field",
    ),
    (
        "for n in g.nodes():\n t = 0.0\n for e in n.incoming_edges():\n  t += e.w\n"
        ' n["y"] = t\nreturn n["y"]',
        "t += e.w",
        "`t` was set outside of this loop: sums are fields, row",
    ),
    (
        'for e in g.edges():\n e["y"] = [e.w]\nreturn e["y"]',
        "[e.w]",
        "an expression of this kind",
    ),
]

SIGNATURES = [
    ("x: Nodes['in']", "def f", "takes a graph: declare one, `g: Graph`"),
    ("g: Graph, x", "x", "`x` needs a kind"),
    ("g: Graph, x: int", "int", "`int` is no kind of argument: there are: DstNodes, Edges"),
    ("g: Graph, x: Nodes[2.5]", "2.5", "a width is a name, a number or a product"),
    ("g: Graph, x: Nodes['etype', 'in']", "x: Nodes", "only weights have a block for each type"),
    ("g: Graph, W: Weights['in', 'etype']", "W: Weights", "`etype` is no width: it comes first"),
    ("g: Graph, k: Graph", "k: Graph", "over one graph, `g` is one already"),
    ("g: Graph, x: Nodes = None", "None", "an argument of a program has no default"),
]


def load(tmp_path: Path, text: str):
    path = tmp_path / "user.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("user", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refused(tmp_path: Path, text: str, pointed: str, message: str) -> gnnc.ProgramError:
    with pytest.raises(gnnc.ProgramError, match=message) as caught:
        load(tmp_path, text)
    error = caught.value
    assert error.filename == str(tmp_path / "user.py")
    line = text.splitlines()[error.lineno - 1]
    assert error.text is not None
    assert error.text.rstrip("\n") == line
    assert line[error.offset - 1 :].startswith(pointed)
    shown = traceback.format_exception_only(error)
    assert shown[0].strip() == f'File "{error.filename}", line {error.lineno}'
    return error


@pytest.mark.parametrize("body, pointed, message", BODIES, ids=[b[2][:40] for b in BODIES])
def test_bodies(tmp_path, body, pointed, message):
    lines = "".join(
        f"    {line.replace(' ', '    ', len(line) - len(line.lstrip()))}\n"
        for line in body.splitlines()
    )
    refused(tmp_path, PRELUDE + lines, pointed, message)


@pytest.mark.parametrize("signature, pointed, message", SIGNATURES, ids=[s[0] for s in SIGNATURES])
def test_signatures(tmp_path, signature, pointed, message):
    text = PRELUDE.partition("def f")[0]
    text += (
        f"def f({signature}):\n    for n in g.nodes():\n        n['y'] = 1.0\n    return n['y']\n"
    )
    refused(tmp_path, text, pointed, message)


def test_the_mark_is_under_the_mistake(tmp_path):
    text = PRELUDE + '    for e in g.edges():\n        e["ä"] = e.w + e["nö"]\n    return e["ä"]\n'
    error = refused(tmp_path, text, 'e["nö"]', "an edge has no `nö`")
    shown = traceback.format_exception_only(error)
    assert shown[1].index('e["nö"]') == shown[2].index("^")
    assert shown[2].count("^") == len('e["nö"]')


def test_types_of_numbers_that_meet(tmp_path):
    body = '    for n in g.nodes():\n        n["y"] = n.x @ root + b\n    return n["y"]\n'
    module = load(tmp_path, PRELUDE + body)
    g = gnnc.Graph(torch.zeros(2, 0, dtype=torch.long), 3)
    x, w = torch.ones(3, 2), torch.ones(0)
    typed, root, b = torch.ones(1, 2, 4), torch.ones(2, 4), torch.ones(4, dtype=torch.float64)
    with pytest.raises(
        gnnc.ProgramError, match="float32 and float64 numbers meet: convert"
    ) as caught:
        module.f(g, x, w, typed, typed, root, b, torch.ones(2))
    line = (PRELUDE + body).splitlines()[caught.value.lineno - 1]
    assert line[caught.value.offset - 1 :] == "n.x @ root + b"


def test_the_documented_program(tmp_path):
    text = (Path(gnnc.__file__).parent / "docs" / "loops.md").read_text()
    program = text.partition("```python\n")[2].partition("\n\n\ng = gnnc.Graph")[0]
    module = load(tmp_path, program)
    g = gnnc.Graph(torch.tensor([[0, 1], [1, 0]]), 2, torch.tensor([0, 2]), num_edge_types=3)
    given = (torch.randn(2, 4), torch.randn(3, 4, 5), torch.randn(3, 5), torch.randn(3, 5))
    out = module.rgat(g, *given)
    expected = torch.stack([given[0][1] @ given[1][2], given[0][0] @ given[1][0]])
    torch.testing.assert_close(out, expected)


def test_no_source():
    names: dict[str, object] = {}
    exec("def f(g): return g", names)
    with pytest.raises(TypeError, match="reads the source of f, and finds none"):
        gnnc.program(names["f"])
    with pytest.raises(TypeError, match="takes a function, not int"):
        gnnc.program(3)
