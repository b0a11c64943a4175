"""The patterns of `raise`: what users write, found in the ops it becomes."""
