"""GradSight: where gradients break in PyTorch code.  Imported in the user's interpreter too, so: the version only."""

__version__ = "0.1.0"
