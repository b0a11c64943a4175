"""Finite sets with maps, and the steps and tables that are made of them."""
