"""The key of a cached program knows every text that programs are printed from."""

from gnnc.frontend import compiler


def test_every_text_of_the_compiler_is_hashed() -> None:
    root = compiler._PACKAGE
    texts = (p for folder in compiler._COMPILER_FOLDERS for p in (root / folder).rglob("*"))
    found = {p.suffix for p in texts if p.is_file() and "__pycache__" not in p.parts}
    assert found <= compiler.HASHED
