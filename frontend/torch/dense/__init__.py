"""Dense batches as rows: what a model computes of `to_dense_batch` (graphs x places x columns, most
places of small graphs empty) is said of the rows of nodes, and of pairs of nodes of one graph.
"""
