"""The names that most programs take from fastai."""

from fastai.data.core import DataLoaders
from fastai.learner import Callback, CancelBatchException, Learner
from fastai.optimizer import SGD, Adam, OptimWrapper, RMSProp, ranger

__all__ = [
    "SGD",
    "Adam",
    "Callback",
    "CancelBatchException",
    "DataLoaders",
    "Learner",
    "OptimWrapper",
    "RMSProp",
    "ranger",
]
