"""Edits that keep the formatting of the user (libcst lives here, imported lazily).

A builder gives the candidates for a finding of the rule that names it; nothing here knows whether a candidate helps: that
is verified by whoever can analyse the result.
"""
