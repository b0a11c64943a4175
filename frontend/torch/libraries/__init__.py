"""What gnnc knows of libraries on top of torch, a folder each: their functions as leaves of a graph
and the rules of these, which enter the importer's table.
"""
