"""Training steps written by hand: what generated code is measured against."""
