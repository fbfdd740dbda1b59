"""The only room that knows the language server protocol."""

# Before any other module of this room can import pygls, which would build every class of the protocol.
from gradsight.lsp import wire_types

__all__ = ["wire_types"]
