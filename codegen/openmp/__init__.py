"""C with OpenMP: vectors, blocks of rows, products in tiles."""
