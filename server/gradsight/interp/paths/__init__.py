"""Paths and entries: where execution starts, and the machine that is put together for it."""
