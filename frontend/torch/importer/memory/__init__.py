"""The importer's second stage: who shares memory with whom, and edits in place as values.

In go the graph and the example tensors of its nodes; out come the classes of nodes that are one
memory, what an edit makes of each, and what autograd would keep of it.
"""
