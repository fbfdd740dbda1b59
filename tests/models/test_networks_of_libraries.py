"""Networks of torchvision, timm and others by their parts: a hazard that is found through the model, and a safe look-alike."""

from __future__ import annotations

import pytest

from tests.models.checking import check

HEAD = """
import segmentation_models_pytorch as smp
import timm
import torchvision
from timm.utils import ModelEmaV2

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 3, 64, 64), torch.zeros(8).long()))
"""
LOOP = """
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
"""
FREEZE = "for p in PART.parameters():\n    p.requires_grad = False\n"


def frozen(part: str) -> str:
    return FREEZE.replace("PART", part)


RESNET = "model = torchvision.models.resnet50(weights='DEFAULT')\n"
VGG = "model = torchvision.models.vgg16(pretrained=True)\n"
TIMM = "model = timm.create_model('resnet50', pretrained=True)\n" + frozen("model")
UNET = "model = smp.Unet('resnet34', classes=2)\nmodel.freeze_encoder()\n"
HAZARDS = {
    "frozen features are what the optimizer holds": VGG
    + frozen("model.features")
    + "opt = torch.optim.Adam(model.features.parameters())  # GS512",
    "one stage is trained and the others are not frozen": RESNET
    + "opt = torch.optim.Adam(model.layer4.parameters())  # GS512",
    "the optimizer holds the head that is replaced": RESNET
    + frozen("model")
    + "opt = torch.optim.SGD(model.fc.parameters(), lr=0.1)\nmodel.fc = nn.Linear(2048, 3)  # GS504",
    "the last layer of a classifier is replaced too late": VGG
    + "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel.classifier[6] = nn.Linear(4096, 3)  # GS504",
    "the head of timm is made anew too late": TIMM
    + "opt = torch.optim.SGD(model.get_classifier().parameters(), lr=0.1)\nmodel.reset_classifier(3)  # GS504",
    "an encoder is frozen and trained": UNET
    + "opt = torch.optim.SGD(model.encoder.parameters(), lr=0.1)  # GS512",
    "the optimizer holds the average": "model = nn.Linear(3, 1)\nema = ModelEmaV2(model)\n"
    "opt = torch.optim.SGD(ema.module.parameters(), lr=0.1)  # GS512",
}
SAFE = {
    "the classifier is trained": VGG
    + frozen("model.features")
    + "opt = torch.optim.Adam(model.classifier.parameters())",
    "one stage is trained and the others are frozen": RESNET
    + frozen("model")
    + "model.layer4.requires_grad_(True)\nopt = torch.optim.Adam(model.layer4.parameters())",
    "the head is replaced first": RESNET
    + frozen("model")
    + "model.fc = nn.Linear(2048, 3)\nopt = torch.optim.SGD(model.fc.parameters(), lr=0.1)",
    "the last layer of a classifier is replaced first": VGG
    + "model.classifier[6] = nn.Linear(4096, 3)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)",
    "the head of timm is made anew first": TIMM
    + "model.reset_classifier(3)\nopt = torch.optim.SGD(model.get_classifier().parameters(), lr=0.1)",
    "an encoder is frozen and the rest is trained": UNET
    + "opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)",
    "the average follows": "model = nn.Linear(3, 1)\nema = ModelEmaV2(model)\n"
    "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nema.update(model)",
}


@pytest.mark.parametrize("name", HAZARDS)
def test_part_that_is_not_trained_is_reported_where(name: str) -> None:
    check(HEAD + HAZARDS[name] + LOOP)


@pytest.mark.parametrize("name", SAFE)
def test_nothing_is_reported_where(name: str) -> None:
    check(HEAD + SAFE[name] + LOOP)


CLEARING = {
    "children by name": (
        (
            "parts = []\n"
            "for name, module in torchvision.models.resnet50().named_children():\n"
            "    if not isinstance(module, (nn.Linear, nn.MaxPool2d)):\n"
            "        parts.append(module)\n"
            "model = nn.Sequential(*parts)"
        ),
        "model(x).flatten(1).mean()",
    ),
    "children but the last": (
        "model = nn.Sequential(*list(torchvision.models.resnet18().children())[:-2])",
        "model(x).mean()",
    ),
    "a submodule's factory": (
        "from torchvision.models.resnet import BasicBlock, ResNet\nmodel = ResNet(BasicBlock, [2, 2, 2, 2])",
        "F.cross_entropy(model(x), y)",
    ),
    "a model by its name": ("model = torchvision.models.get_model('vgg11')", "F.cross_entropy(model(x), y)"),
    "two outputs": (
        "model = torchvision.models.inception_v3()",
        "sum(F.cross_entropy(one, y) for one in model(x))",
    ),
    "a dict of maps": (
        "model = torchvision.models.segmentation.deeplabv3_resnet50(num_classes=3)",
        "F.cross_entropy(model(x)['out'], y)",
    ),
    "a dict of losses": (
        (
            "model = torchvision.models.detection.fasterrcnn_resnet50_fpn()\n"
            "width = model.roi_heads.box_predictor.cls_score.in_features\n"
            "predictor = torchvision.models.detection.faster_rcnn.FastRCNNPredictor\n"
            "model.roi_heads.box_predictor = predictor(width, 3)"
        ),
        "sum(model(x, y).values())",
    ),
    "maps of timm": (
        "model = timm.create_model('resnet18', features_only=True)",
        "sum(one.mean() for one in model(x))",
    ),
    "a video": ("model = torchvision.models.video.r3d_18()", "F.cross_entropy(model(x), y)"),
}


@pytest.mark.parametrize("name", CLEARING)
def test_gradients_that_add_up_are_reported_with(name: str) -> None:
    made, loss = CLEARING[name]
    program = f"{HEAD}{made}\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x, y in loader:\n"
    step = f"    loss = {loss}\n    loss.backward()MARK\n    opt.step()\n"
    check(program + step.replace("MARK", "  # GS501"))
    check(program + "    opt.zero_grad()\n" + step.replace("MARK", ""))


PERCEPTUAL = """
vgg = torchvision.models.vgg16(weights='DEFAULT').features[:16].eval()
for p in vgg.parameters():
    p.requires_grad = False
model = nn.Conv2d(3, 3, 3, padding=1)
opt = torch.optim.Adam(model.parameters())
for x, y in loader:
    opt.zero_grad()
    fake = model(x)
    with torch.no_grad():
        wanted = vgg(x)
    loss = F.l1_loss(SEEN, wanted)MARK
    loss.backward()
    opt.step()
"""


def test_features_of_what_is_generated_keep_their_graph() -> None:
    check(HEAD + PERCEPTUAL.replace("SEEN", "vgg(fake)").replace("MARK", ""))
    check(HEAD + PERCEPTUAL.replace("SEEN", "vgg(fake).detach()").replace("MARK", "  # GS203"))


def test_body_whose_output_is_cut_off_learns_nothing() -> None:
    program = """
resnet = torchvision.models.resnet18()
body = nn.Sequential(*list(resnet.children())[:-2])
head = nn.Linear(512, 3)
opt = torch.optim.Adam([*body.parameters(), *head.parameters()])
for x, y in loader:
    opt.zero_grad()
    out = body(x)CUT.mean((2, 3))MARK
    F.cross_entropy(head(out), y).backward()
    opt.step()
"""
    check(HEAD + program.replace("CUT", ".detach()").replace("MARK", "  # GS203"))
    check(HEAD + program.replace("CUT", "").replace("MARK", ""))


def test_adapters_come_before_the_optimizer() -> None:
    program = """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

base = AutoModelForCausalLM.from_pretrained('gpt2')
BEFORE
model = get_peft_model(base, LoraConfig(target_modules=['q_proj']))MARK
AFTER
for x, y in loader:
    opt.zero_grad()
    model(input_ids=x, labels=y).loss.backward()
    opt.step()
"""
    made = "opt = torch.optim.AdamW(base.parameters(), lr=1e-4)"
    late = program.replace("BEFORE", made).replace("AFTER", "").replace("MARK", "  # GS504")
    check(HEAD + late)
    right = made.replace("base", "model")
    check(HEAD + program.replace("BEFORE", "").replace("AFTER", right).replace("MARK", ""))


def test_picture_of_a_tensor_keeps_no_graph() -> None:
    program = """
from torchvision.utils import make_grid

model = nn.Conv2d(3, 3, 3, padding=1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for x, y in loader:
    opt.zero_grad()
    out = model(x)
    loss = out.mean()
    loss.backward()
    opt.step()
    total += ADDEDMARK
"""
    check(HEAD + program.replace("ADDED", "make_grid(out).mean()").replace("MARK", ""))
    check(HEAD + program.replace("ADDED", "loss").replace("MARK", "  # GS404"))
