"""Where edges should lie by a map, and where their order is somebody else's."""

import pytest
from xdsl.dialects.func import FuncOp

from gnnc.dialects.meaning.check import parse_module
from gnnc.passes.analysis.edge_order import edge_orders

BOTH_ENDS = """
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>{arguments},
    %x : !inter.rows<N, 4xf32>) -> !inter.rows<N, f32> {{
  %a = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %b = inter.at %g[{other}], %x : !inter.rows<g, 4xf32>
  %m = inter.mul %a, %b : !inter.rows<g, 4xf32>
  %s = inter.row_reduce sum %m [0] : !inter.rows<g, f32>
  {between}
  %r = inter.reduce sum %s over %g along {along} : !inter.rows<N, f32>
  {behind}
  func.return %r : !inter.rows<N, f32>
}}
"""


def orders(
    arguments: str = "", other: str = "dst", along: str = "dst", between: str = "", behind: str = ""
) -> dict[str, str]:
    text = BOTH_ENDS.format(
        arguments=arguments, other=other, along=along, between=between, behind=behind
    )
    (func,) = parse_module(text).body.block.ops
    assert isinstance(func, FuncOp)
    return edge_orders(func)


@pytest.mark.parametrize("along", ["src", "dst"])
def test_products_of_both_ends_lie_by_the_map_of_their_sums(along: str) -> None:
    assert orders(along=along) == {"g": along}


def test_what_one_end_gives_lies_anywhere() -> None:
    assert orders(other="src") == {}


ROW = "%k = inter.at %g[src], %x : !inter.rows<g, 4xf32>"


@pytest.mark.parametrize(
    "case",
    [
        {"arguments": ",\n    %w : !inter.rows<g, f32>"},
        {"arguments": ",\n    %t : !inter.set<t, in: g, out: g>"},
        {"behind": "%q = inter.reduce sum %s over %g along src : !inter.rows<N, f32>"},
        {"between": "%i = inter.iota %g : !inter.rows<g, i64>"},
        {
            "arguments": ",\n    %key : !inter.rows<unit, i64>",
            "between": ROW + "\n  %d = inter.dropout %k, %key over %g {p = 0.5, site = 0} "
            ": !inter.rows<g, 4xf32>",
        },
    ],
    ids=["rows of edges", "edges of edges", "two sums", "numbers of edges", "dropout"],
)
def test_edges_that_somebody_tells_apart_stay(case: dict[str, str]) -> None:
    assert orders(**case) == {}


def test_rows_of_edges_that_come_out_keep_their_order() -> None:
    text = BOTH_ENDS.format(arguments="", other="dst", along="dst", between="", behind="")
    text = text.replace("-> !inter.rows<N, f32>", "-> (!inter.rows<N, f32>, !inter.rows<g, f32>)")
    text = text.replace(
        "return %r : !inter.rows<N, f32>",
        "return %r, %s : !inter.rows<N, f32>, !inter.rows<g, f32>",
    )
    (func,) = parse_module(text).body.block.ops
    assert isinstance(func, FuncOp)
    assert edge_orders(func) == {}
