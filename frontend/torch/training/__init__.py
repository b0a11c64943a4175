"""Trainings as programs on tensors: called in Python, and captured to be built without it."""
