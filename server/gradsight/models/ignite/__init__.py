"""PyTorch Ignite: an engine that calls a function for every batch, and handlers around it."""
