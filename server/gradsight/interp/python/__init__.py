"""The language: executes Python source symbolically, and knows nothing of tensors but that they are values."""
