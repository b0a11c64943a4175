"""The C compiler, the threads and the memory of this machine."""
