"""What libraries do: torch's own functions, the standard library, copies and transforms."""
