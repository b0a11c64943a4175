"""What the third stage computes with: symbolic values over sets without names.

In goes arithmetic on tensors as rules spell it (`context.py`), out come nodes, each once and
integers in a normal form (`values.py`), and the sets that their rows are of (`sizes.py`).
"""
