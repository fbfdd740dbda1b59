"""Edits that keep the formatting of the user (libcst lives here, imported lazily)."""
