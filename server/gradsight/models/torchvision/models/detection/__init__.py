"""Detection: a dict of losses while a model trains, a list with what was found in every image otherwise."""

from torchvision.models.detection.faster_rcnn import *
from torchvision.models.detection.fcos import *
from torchvision.models.detection.keypoint_rcnn import *
from torchvision.models.detection.mask_rcnn import *
from torchvision.models.detection.retinanet import *
from torchvision.models.detection.ssd import *
from torchvision.models.detection.ssdlite import *
