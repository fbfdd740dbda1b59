"""Faster R-CNN: `backbone`, `rpn`, and `roi_heads`, whose `box_predictor` programs replace."""

from torch import nn

from torchvision.models._api import _loaded, _Weights
from torchvision.models.detection._outline import _detections, _features, _Pyramid

FasterRCNN_ResNet50_FPN_Weights = FasterRCNN_ResNet50_FPN_V2_Weights = _Weights
FasterRCNN_MobileNet_V3_Large_FPN_Weights = FasterRCNN_MobileNet_V3_Large_320_FPN_Weights = _Weights


class TwoMLPHead(nn.Module):
    def __init__(self, in_channels, representation_size):
        super().__init__()
        self.fc6 = nn.Linear(in_channels, representation_size)
        self.fc7 = nn.Linear(representation_size, representation_size)

    def forward(self, x):
        return self.fc7(self.fc6(x.flatten(start_dim=1)).relu()).relu()


class FastRCNNPredictor(nn.Module):
    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.cls_score = nn.Linear(in_channels, num_classes)
        self.bbox_pred = nn.Linear(in_channels, num_classes * 4)

    def forward(self, x):
        return self.cls_score(x), self.bbox_pred(x)


class _RPN(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.anchor_generator = nn.Identity()
        self.head = nn.Conv2d(in_channels, 5, 1)

    def forward(self, features):
        return self.head(features)


class _RoIHeads(nn.Module):
    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.box_roi_pool = nn.AdaptiveAvgPool2d(7)
        self.box_head = TwoMLPHead(in_channels * 7**2, 1024)
        self.box_predictor = FastRCNNPredictor(1024, num_classes)

    def forward(self, features):
        return self.box_predictor(self.box_head(self.box_roi_pool(features)))


class FasterRCNN(nn.Module):
    def __init__(self, backbone, num_classes=None, min_size=800, max_size=1333, **kwargs):
        super().__init__()
        self.transform = nn.Identity()
        self.backbone = backbone
        self.rpn = _RPN(backbone.out_channels)
        self.roi_heads = _RoIHeads(backbone.out_channels, num_classes or 91)

    def forward(self, images, targets=None):
        features = _features(self.backbone, images)
        proposals = self.rpn(features)
        scores, boxes = self.roi_heads(features)
        if self.training:
            return {
                **_box_losses(scores, boxes),
                **self._further_losses(features),
                **_proposal_losses(proposals),
            }
        return _detections(images, scores[:, :, None, None], boxes[:, :, None, None])

    def _further_losses(self, features):
        return {}


def _box_losses(scores, boxes):
    return {"loss_classifier": scores.square().mean(), "loss_box_reg": boxes.abs().mean()}


def _proposal_losses(proposals):
    return {
        "loss_objectness": proposals[:, :1].square().mean(),
        "loss_rpn_box_reg": proposals[:, 1:].abs().mean(),
    }


def _faster_rcnn(num_classes, weights, pretrained, kwargs):
    return _loaded(FasterRCNN(_Pyramid(), num_classes or 91, **kwargs), weights, pretrained)


def fasterrcnn_resnet50_fpn(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    return _faster_rcnn(num_classes, weights, pretrained, kwargs)


def fasterrcnn_resnet50_fpn_v2(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    return _faster_rcnn(num_classes, weights, pretrained, kwargs)


def fasterrcnn_mobilenet_v3_large_fpn(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    return _faster_rcnn(num_classes, weights, pretrained, kwargs)


def fasterrcnn_mobilenet_v3_large_320_fpn(
    *,
    weights=None,
    progress=True,
    num_classes=None,
    weights_backbone=None,
    trainable_backbone_layers=None,
    pretrained=False,
    **kwargs,
):
    return _faster_rcnn(num_classes, weights, pretrained, kwargs)
