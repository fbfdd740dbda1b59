"""timm: the parts of a network, its head, its body alone, and what stands around the training."""

import timm
import torch
from parts import carries_graph, children, frozen, loader, with_gradient
from recorder import log
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV2, NativeScaler
from torch import nn


def main():
    image = torch.rand(2, 3, 64, 64)
    for name in ("resnet18", "efficientnet_b0", "densenet121", "vit_tiny_patch16_224", "convnext_tiny"):
        network = timm.create_model(name, num_classes=3)
        log(f"{name}: {children(network)}: {type(network.get_classifier()).__name__}, {network.num_classes}")
    network = timm.create_model("resnet18", num_classes=3)
    out = network(image)
    log(f"out: {tuple(out.shape)}, {carries_graph(out)}")
    out.sum().backward()
    log(with_gradient(network))
    features = network.forward_features(image)
    log(
        f"features: {features.dim()}, {carries_graph(features)}; {tuple(network.forward_head(features).shape)}"
    )
    log(f"before the head: {network.forward_head(features, pre_logits=True).dim()}")
    network.reset_classifier(7)
    log(f"new head: {network.get_classifier().out_features}, {tuple(network(image).shape)}")
    network = timm.create_model("resnet18", num_classes=0)
    log(f"no head: {network(image).dim()}, {type(network.get_classifier()).__name__}")
    network = timm.create_model("resnet18", num_classes=0, global_pool="")
    log(f"no pool: {network(image).dim()}")
    network = timm.create_model("resnet18", features_only=True)
    maps = network(image)
    log(
        f"maps: {type(maps).__name__} of {len(maps)}, {carries_graph(maps)}, {network.feature_info.channels()}"
    )
    network = nn.Linear(2, 1)
    optimizer = create_optimizer_v2(network, opt="sgd", lr=0.1)
    log(f"optimizer: {isinstance(optimizer, torch.optim.Optimizer)}")
    schedule = CosineLRScheduler(optimizer, t_initial=2)
    followed = ModelEmaV2(network, decay=0.5)
    log(f"average: {frozen(followed)}, {followed.module is network}, {followed.module.training}")
    scaler = NativeScaler(device="cpu")
    for x, y in loader():
        before = network.weight.detach().clone()
        loss = (network(x) - y).square().mean()
        optimizer.zero_grad()
        scaler(loss, optimizer, clip_grad=1.0, parameters=network.parameters())
        schedule.step(1)
        log(f"stepped: {bool((network.weight != before).any())}, gradient: {network.weight.grad is not None}")
        mean = followed.module.weight.detach().clone()
        followed.update(network)
        moved = bool((followed.module.weight != mean).any())
        log(
            f"average moved: {moved}, {carries_graph(followed.module.weight)}, {followed.module.weight.grad is None}"
        )
    scores = torch.rand(2, 3, requires_grad=True)
    log(f"smoothed: {carries_graph(LabelSmoothingCrossEntropy()(scores, torch.tensor([0, 1])))}")
    log(f"soft: {carries_graph(SoftTargetCrossEntropy()(scores, torch.rand(2, 3)))}")
