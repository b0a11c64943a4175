"""What runs compiled code: the tool chain, its cache, graph structure and threads. Nothing is
imported until it is asked for.
"""
