"""Segmentation: what comes out is a dict, and what counts in it is `out`."""

from torchvision.models.segmentation.deeplabv3 import *
from torchvision.models.segmentation.fcn import *
from torchvision.models.segmentation.lraspp import *
