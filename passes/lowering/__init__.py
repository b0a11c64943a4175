"""How each `inter` op becomes nests over buffers: used by the pass `lower-to-intra`."""
