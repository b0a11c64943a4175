"""Passes on `inter` modules, one a file, and in folders what only one of them needs."""
