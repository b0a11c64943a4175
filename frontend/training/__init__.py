"""Trainings as programs: a function with the usual loop of torch, read from its source."""
