"""Bugs sown by rule into training code that others wrote: a ruler at scale, beside the hand-made sets of `injected`."""
