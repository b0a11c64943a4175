"""What gnnc knows of PyTorch Geometric."""
