"""What stands in `ignite` itself since 0.5."""
