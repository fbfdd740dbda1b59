"""The only package that knows the language server protocol."""

# Before any other module of this package can import pygls, which would build every class of the protocol.
from gradsight.lsp import wire_types

__all__ = ["wire_types"]
