"""The workshop: generators and tools that are never shipped."""
