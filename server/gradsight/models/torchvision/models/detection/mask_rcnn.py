"""Mask R-CNN: Faster R-CNN with a head for masks."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models.detection._outline import _Pyramid
from torchvision.models.detection.faster_rcnn import FasterRCNN

MaskRCNN_ResNet50_FPN_Weights = MaskRCNN_ResNet50_FPN_V2_Weights = _Weights


class MaskRCNNPredictor(nn.Sequential):
    def __init__(self, in_channels, dim_reduced, num_classes):
        parts = {
            "conv5_mask": nn.ConvTranspose2d(in_channels, dim_reduced, 2, stride=2),
            "relu": nn.ReLU(inplace=True),
            "mask_fcn_logits": nn.Conv2d(dim_reduced, num_classes, 1),
        }
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)


class MaskRCNN(FasterRCNN):
    def __init__(self, backbone, num_classes=None, min_size=800, max_size=1333, **kwargs):
        super().__init__(backbone, num_classes, min_size, max_size)
        self.roi_heads.mask_roi_pool = nn.AdaptiveAvgPool2d(14)
        self.roi_heads.mask_head = nn.Conv2d(backbone.out_channels, 256, 3, padding=1)
        self.roi_heads.mask_predictor = MaskRCNNPredictor(256, 256, num_classes or 91)

    def _further_losses(self, features):
        heads = self.roi_heads
        masks = heads.mask_predictor(heads.mask_head(heads.mask_roi_pool(features)))
        return {"loss_mask": masks.square().mean()}


def _mask_rcnn(num_classes, weights, pretrained, kwargs):
    return _loaded(MaskRCNN(_Pyramid(), num_classes or 91, **kwargs), weights, pretrained)


def maskrcnn_resnet50_fpn(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    return _mask_rcnn(num_classes, weights, pretrained, kwargs)


def maskrcnn_resnet50_fpn_v2(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    return _mask_rcnn(num_classes, weights, pretrained, kwargs)
