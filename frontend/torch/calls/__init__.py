"""Calls of compiled programs from torch: arguments, results, and torch's autograd."""
