"""CUDA C++: kernels of a nest each, and a C function a phase that launches them."""
