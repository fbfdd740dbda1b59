"""PyTorch Geometric: message passing."""
