"""`gnnc.inference`: a model over a whole graph, layer by layer in chunks of rows."""
