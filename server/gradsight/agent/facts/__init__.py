"""Measures what torch's operators do to storages and to the graph, inside the interpreter that has torch.

Everything here uses the standard library and torch only and speaks plain dictionaries, so that the same code runs in the
user's interpreter (`gradsight facts --refresh`) and in the generator of the shipped table.
"""
