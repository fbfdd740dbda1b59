"""The names that most programs take from fastai."""

from fastai.learner import CancelBatchException, Callback, Learner

__all__ = ["Callback", "CancelBatchException", "Learner"]
