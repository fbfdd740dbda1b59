"""Facts about torch operators, generated from real torch; loading them needs no torch."""
