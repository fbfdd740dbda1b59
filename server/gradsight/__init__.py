"""GradSight: where gradients break in PyTorch code.  Imported in the user's interpreter too, so: nothing is loaded yet."""

from __future__ import annotations

# `typing` takes longer to load than a version takes to be said.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradsight.live.watching import report, watch

__version__ = "0.1.0"
__all__ = ["__version__", "report", "watch"]


def __getattr__(name: str) -> object:
    if name in ("watch", "report"):
        from gradsight.live import watching

        return getattr(watching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext gradsight`."""
    from gradsight.live import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: object) -> None:
    """`%unload_ext gradsight`."""
    from gradsight.live import notebook

    notebook.unload(shell)
