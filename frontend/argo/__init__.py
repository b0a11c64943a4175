"""Tunes how mini-batch training is split over processes and cores (docs/argo.md)."""
