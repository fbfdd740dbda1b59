"""Bugs put into training code that others wrote: described as edits by place, applied to the published files, scored.

An *edit* is a bug or a look-alike that is safe.  It names places (line, columns) of one file of a pinned source and what
stands there instead; the source itself is fetched, never kept.  A *world* is the kind of code around it.
"""
