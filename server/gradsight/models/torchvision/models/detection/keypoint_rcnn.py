"""Keypoint R-CNN: Faster R-CNN with a head for key points."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models.detection._outline import _Pyramid
from torchvision.models.detection.faster_rcnn import FasterRCNN

KeypointRCNN_ResNet50_FPN_Weights = _Weights


class KeypointRCNN(FasterRCNN):
    def __init__(self, backbone, num_classes=None, min_size=None, max_size=1333, **kwargs):
        super().__init__(backbone, num_classes)
        self.roi_heads.keypoint_roi_pool = nn.AdaptiveAvgPool2d(14)
        self.roi_heads.keypoint_head = nn.Conv2d(backbone.out_channels, 512, 3, padding=1)
        self.roi_heads.keypoint_predictor = nn.ConvTranspose2d(512, 17, 4, stride=2)

    def _further_losses(self, features):
        heads = self.roi_heads
        points = heads.keypoint_predictor(heads.keypoint_head(heads.keypoint_roi_pool(features)))
        return {"loss_keypoint": points.square().mean()}


def keypointrcnn_resnet50_fpn(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    num_keypoints=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    return _loaded(KeypointRCNN(_Pyramid(), num_classes or 2), weights, pretrained)
