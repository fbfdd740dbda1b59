"""Segmentation, detection, operators and pictures of torchvision."""

import tempfile

import torch
from parts import carries_graph, children, with_gradient
from recorder import log
from torchvision import ops, utils
from torchvision.models import detection, segmentation


def main():
    image = torch.rand(2, 3, 64, 64)
    for name in ("fcn_resnet50", "deeplabv3_resnet50"):
        network = getattr(segmentation, name)(
            weights=None, weights_backbone=None, num_classes=3, aux_loss=True
        )
        out = network(image)
        log(f"{name}: {children(network)}: {list(out)}: {tuple(out['out'].shape)}")
        log(f"  backbone: {children(network.backbone)}; classifier: {len(network.classifier)}")
        (out["out"].sum() + out["aux"].sum()).backward()
        log(f"  {with_gradient(network)}")
    network = segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
    log(f"lraspp: {children(network)}: {list(network(image))}")
    boxes = {"boxes": torch.tensor([[1.0, 1.0, 50.0, 50.0]]), "labels": torch.tensor([1])}
    for name in ("retinanet_resnet50_fpn", "fcos_resnet50_fpn", "ssdlite320_mobilenet_v3_large"):
        network = getattr(detection, name)(weights=None, weights_backbone=None, num_classes=3)
        losses = network([torch.rand(3, 320, 320)] * 2, [boxes, boxes])
        log(f"{name}: {children(network)}: {sorted(losses)}, with a graph: {carries_graph(losses)}")
        sum(losses.values()).backward()
        log(f"  {with_gradient(network)}")
    for name in ("fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn"):
        network = getattr(detection, name)(weights=None, weights_backbone=None)
        log(
            f"{name}: {children(network)}; {children(network.roi_heads)}; {children(network.roi_heads.box_predictor)}"
        )
    left = torch.tensor([[0.0, 0.0, 2.0, 2.0]], requires_grad=True)
    right = torch.tensor([[1.0, 1.0, 3.0, 3.0]])
    log(f"box_iou: {carries_graph(ops.box_iou(left, right))}")
    for loss in (ops.generalized_box_iou_loss, ops.complete_box_iou_loss, ops.distance_box_iou_loss):
        log(
            f"{loss.__name__}: {tuple(loss(left, right, reduction='mean').shape)}, {carries_graph(loss(left, right))}"
        )
    focal = ops.sigmoid_focal_loss(left, torch.ones(1, 4), reduction="mean")
    log(f"focal: {tuple(focal.shape)}, {carries_graph(focal)}")
    maps = {"a": torch.rand(1, 4, 8, 8), "b": torch.rand(1, 8, 4, 4)}
    pyramid = ops.FeaturePyramidNetwork([4, 8], 5)(maps)
    log(f"pyramid: {list(pyramid)}, {tuple(pyramid['a'].shape)}, {carries_graph(pyramid)}")
    picture = image.clone().requires_grad_() * 2
    log(f"grid: {carries_graph(utils.make_grid(picture))}")
    with tempfile.TemporaryDirectory() as folder:
        log(f"saved: {utils.save_image(picture, folder + '/a.png')}")
