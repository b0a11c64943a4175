"""Sparse matrices of torch and SciPy as arguments of what is compiled.

Dynamo cannot trace sparse layouts. So a matrix enters as a `Matrix` (matrix.py), which Dynamo takes
for one tensor of two dimensions and which knows the functions of torch that take a sparse matrix
(operations.py). Before a graph is imported its matrices are taken apart (graphs.py): what is left
is a graph of dense tensors, one number of a row, a column and a value for each entry, and the leaf
`gnnc.sparse_matmul`.
"""

from . import leaves  # noqa: F401
