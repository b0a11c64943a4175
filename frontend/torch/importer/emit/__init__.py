"""The importer's fourth stage: values become `inter` ops over named sets.

In go the values that results need; out come the arguments of the program, its sets with their maps,
and its ops.
"""
