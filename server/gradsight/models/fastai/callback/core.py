"""Where fastai defines its callbacks."""

from fastai.learner import CancelBatchException, Callback

__all__ = ["Callback", "CancelBatchException"]
