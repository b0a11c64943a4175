"""The loop language: message passing as loops over edges and nodes, read from Python's source.

The form is that of Hector's Listing 1 (inter-operator level). `declarations.py` reads the
signature, `statements.py` and `expressions.py` the body, both by the rules of `widths.py`, into a
`Program` of `values.py`; `emit.py` makes an `inter` module of that. Nothing here knows tensors:
frontend/torch/loops binds and runs the module. docs/loops.md describes the language.
"""
