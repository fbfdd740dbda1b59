"""Vision: everything of the basics, and learners over a pretrained model."""

from fastai.basics import *
from fastai.learner import Learner
from torchvision.models import Backbone


def vision_learner(dls, arch, *args, **kwargs):
    return Learner(dls, Backbone(), *args, **kwargs)


cnn_learner = vision_learner
