"""The abstract machine: executes Python source symbolically and records what autograd would do."""
