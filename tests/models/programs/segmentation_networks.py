"""segmentation_models_pytorch: an encoder, a decoder and heads; freezing; losses."""

import segmentation_models_pytorch as smp
import torch
from parts import carries_graph, children, frozen, with_gradient
from recorder import log
from segmentation_models_pytorch.losses import DiceLoss, FocalLoss, JaccardLoss, SoftBCEWithLogitsLoss


def main():
    image = torch.rand(2, 3, 64, 64)
    for name in ("Unet", "FPN", "Linknet", "MAnet", "DeepLabV3Plus"):
        network = getattr(smp, name)("resnet18", encoder_weights=None, classes=2)
        out = network(image)
        log(f"{name}: {children(network)}: {tuple(out.shape[:2])}, {carries_graph(out)}")
        out.sum().backward()
        log(f"  {with_gradient(network)}")
        log(f"  predicted: {carries_graph(network.predict(image))}, training: {network.training}")
    network = smp.create_model("unet", "resnet18", encoder_weights=None, classes=1)
    network.freeze_encoder()
    network.train()
    log(f"frozen: {frozen(network.encoder)}, {frozen(network.decoder)}")
    network(image).sum().backward()
    log(f"  {with_gradient(network)}")
    network.unfreeze_encoder()
    log(f"unfrozen: {frozen(network.encoder)}")
    network = smp.Unet("resnet18", encoder_weights=None, classes=2, aux_params={"classes": 4})
    _, labels = network(image)
    log(f"two heads: {children(network)}: {tuple(labels.shape)}, {carries_graph(labels)}")
    logits = torch.rand(2, 1, 8, 8, requires_grad=True)
    target = torch.randint(0, 2, (2, 1, 8, 8)).float()
    for loss in (DiceLoss("binary"), JaccardLoss("binary"), FocalLoss("binary"), SoftBCEWithLogitsLoss()):
        value = loss(logits, target)
        log(f"{type(loss).__name__}: {tuple(value.shape)}, {carries_graph(value)}")
