"""Mini-batches drawn from a graph in C: neighbours, subgraphs, walks, pairs without an edge."""
