"""The only room that knows the language server protocol."""
