"""What gnnc knows of libraries on top of torch, one folder each."""
