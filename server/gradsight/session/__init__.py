"""What is open, what was last said about it, what was confirmed; no protocol types."""
