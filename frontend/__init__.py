"""Ways into the compiler: the PyTorch front end, `gnn-opt`, and the `gnnc` command."""
