"""Where fastai defines its callbacks."""

from fastai.learner import Callback, CancelBatchException

__all__ = ["Callback", "CancelBatchException"]
