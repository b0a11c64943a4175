"""What a module must obey before any verifier of an op looks around in it."""

import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

from gnnc.dialects.meaning.check import parse_module

N = "!inter.set<N>"
X = "!inter.rows<N, f32>"


def function(body: str, attributes: str = 'sym_name = "f"') -> str:
    """A function on a set and its rows in the generic syntax, without results."""
    return f"""
"func.func"() <{{{attributes}, function_type = ({N}, {X}) -> ()}}> ({{
^bb0(%N : {N}, %x : {X}):
{body}
  "func.return"() : () -> ()
}}) : () -> ()
"""


def test_a_property_that_is_missing():
    """The verifier of func.return asks its function for a type: that comes later."""
    text = '"func.func"() <{sym_name = "f"}> ({ "func.return"() : () -> () }) : () -> ()'
    with pytest.raises(VerifyException, match="function_type"):
        parse_module(text)


def test_a_value_is_defined_above_its_use():
    text = function(f"""
  %y = "inter.mul"(%z, %x) : ({X}, {X}) -> {X}
  %z = "inter.exp"(%y) : ({X}) -> {X}""")
    with pytest.raises(VerifyException, match="%z of inter.mul is used before its definition"):
        parse_module(text)


def test_a_function_is_one_block():
    two = "func.func @f() {\n  func.return\n^bb1:\n  func.return\n}"
    with pytest.raises(VerifyException, match="@f has 2 blocks: a function is one block"):
        parse_module(two)


def test_functions_do_not_nest():
    text = "func.func @f() {\n  func.func @g() {\n    func.return\n  }\n  func.return\n}"
    with pytest.raises(VerifyException, match="@g stands inside another op: functions do not nest"):
        parse_module(text)


@pytest.mark.parametrize(
    "text",
    [
        "%c = intra.count : i64",
        "%n = intra.size\n%c = intra.count %n",
        "%n = intra.size : index\n%c = intra.count %n, %n : i64",
        "%p = intra.part : memref<?xf32>",
    ],
)
def test_a_wrong_number_of_operands_or_results(text):
    with pytest.raises(ParseError):
        parse_module(text)


@pytest.mark.parametrize("dims", ["2147483648", "65536x65536", "1000000007x7"])
def test_a_row_that_is_too_long(dims):
    for text in (
        f"func.func @f(%x : !inter.rows<unit, {dims}xf32>) {{\n  func.return\n}}",
        f'%b = intra.input {{buffer = "x"}} : memref<?x{dims}xf32>',
    ):
        with pytest.raises((ParseError, VerifyException), match="fewer than 2\\^31 numbers"):
            parse_module(text)
