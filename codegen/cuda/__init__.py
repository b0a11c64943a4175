"""CUDA C++: the device functions that kernels call."""
