"""CUDA: NVRTC, which checks device text on any machine, and what runs it on one with a GPU. Nothing
is imported until it is asked for, and cupy only where a device is used.
"""
