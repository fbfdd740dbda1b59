"""Vision: everything of the basics, and learners over a pretrained model."""

from fastai.basics import *
from fastai.learner import Learner
from torchvision.models import resnet18


def vision_learner(dls, arch, *args, **kwargs):
    return Learner(dls, arch() if callable(arch) else resnet18(), *args, **kwargs)


cnn_learner = vision_learner
