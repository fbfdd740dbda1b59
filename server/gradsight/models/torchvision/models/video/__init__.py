"""Models for videos."""

from torchvision.models.video.resnet import *
from torchvision.models.video.s3d import *
