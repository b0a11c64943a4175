"""Printers: intra IR -> source text, a folder for each target. `frontend/targets.py` finds them by
what the records of targets say (passes/targets).
"""
