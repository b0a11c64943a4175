"""PyTorch in: capture of models, import into the IR, and `gnnc.compile`."""
