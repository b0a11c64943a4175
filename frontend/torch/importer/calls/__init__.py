"""The importer's first stage: every call as one op with all its arguments named.

In goes a node of the FX graph, out comes its `Canonical` form, as torch's schema spells it.
"""
