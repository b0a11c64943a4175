"""Programs of the loop language (frontend/loops) on tensors: the graph, the call, the gradient."""
