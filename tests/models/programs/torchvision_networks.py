"""The parts of torchvision's networks, which of them get gradients, and what comes out."""

import torch
from parts import carries_graph, children, frozen, kinds, with_gradient
from recorder import log
from torch import nn
from torchvision import models
from torchvision.models import video
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

NAMES = """
alexnet convnext_base convnext_tiny densenet121 densenet161 densenet201 efficientnet_b0 efficientnet_b3 efficientnet_b7
efficientnet_v2_l efficientnet_v2_s googlenet inception_v3 mnasnet0_5 mnasnet1_0 mobilenet_v2 mobilenet_v3_large
mobilenet_v3_small resnet101 resnet152 resnet18 resnet34 resnet50 resnext50_32x4d shufflenet_v2_x1_0 shufflenet_v2_x2_0
squeezenet1_0 squeezenet1_1 swin_b swin_t swin_v2_t vgg11 vgg11_bn vgg13 vgg16 vgg16_bn vgg19 vgg19_bn vit_b_16 vit_l_32
wide_resnet50_2
"""


def structure(name, network):
    log(f"{name}: {type(network).__name__}: {children(network)}")
    for part in ("features", "classifier", "layers", "heads", "trunk_output", "encoder"):
        if isinstance(getattr(network, part, None), nn.Sequential):
            log(f"  {part}: {kinds(getattr(network, part))}")
    for stage in ("layer1", "layer2", "layer3", "layer4", "stage2", "stage3", "stage4"):
        if hasattr(network, stage):
            log(f"  {stage}: {len(getattr(network, stage))}")
    heads = [
        part for part in network.modules() if isinstance(part, nn.Linear) and part.out_features in (400, 1000)
    ]
    log(f"  last: {[head.in_features for head in heads][-1:]}")


def trained(name, network, image):
    network.train()
    out = network(image)
    logits = out if isinstance(out, torch.Tensor) else out[0]
    log(f"{name} returns a {type(out).__name__} of {tuple(logits.shape)}, with a graph: {carries_graph(out)}")
    losses = [one.sum() for one in (out if isinstance(out, tuple) else [out]) if one is not None]
    sum(losses).backward()
    log(f"  {with_gradient(network)}")
    network.zero_grad()
    network.eval()
    log(f"  evaluating: {type(network(image)).__name__}, with a graph: {carries_graph(network(image))}")
    with torch.no_grad():
        log(f"  without grad: {carries_graph(network(image))}")


def main():
    with torch.device("meta"):
        for name in NAMES.split():
            structure(name, getattr(models, name)())
        for name in ("r3d_18", "mc3_18", "r2plus1d_18", "s3d"):
            structure(name, getattr(video, name)())
    for name in ("regnet_x_400mf", "regnet_y_1_6gf"):
        structure(name, getattr(models, name)())
    image = torch.rand(2, 3, 96, 96)
    for name in (
        "resnet18",
        "alexnet",
        "squeezenet1_1",
        "mobilenet_v3_small",
        "inception_v3",
        "googlenet",
        "densenet121",
    ):
        wide = torch.rand(2, 3, 299, 299) if name in ("inception_v3", "googlenet") else image
        trained(name, getattr(models, name)(), wide)
    network = models.get_model("resnet18", num_classes=5)
    log(f"get_model: {type(network).__name__}, {network.fc.out_features}")
    for parameter in network.parameters():
        parameter.requires_grad = False
    network.fc = nn.Linear(network.fc.in_features, 3)
    network(image).sum().backward()
    log(f"a new head: {frozen(network)}: {with_gradient(network)}")
    body = nn.Sequential(*list(network.children())[:-2])
    log(f"body: {tuple(body(image).shape[:2])}, with a graph: {carries_graph(body(image))}")
    log(f"own: {children(ResNet(BasicBlock, [1, 1, 1, 1], num_classes=2))}")
    log(f"block: {children(BasicBlock(64, 64))}; {children(Bottleneck(256, 64))}")
