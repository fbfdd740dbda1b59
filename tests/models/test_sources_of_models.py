"""Where a model comes from does not matter: factories, registries, libraries and wrappers, in one file and in another.

Each source is tried with a training loop that never clears the gradients, and with its safe twin.
"""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)

"""
SOURCES: dict[str, tuple[str, str, str]] = {
    "torch hub": ("", "model = torch.hub.load('pytorch/vision', 'resnet18')", ""),
    "timm": ("import timm", "model = timm.create_model('resnet18', num_classes=1)", ""),
    "auto model": (
        "from transformers import AutoModel",
        "model = AutoModel.from_pretrained('bert')",
        ".last_hidden_state",
    ),
    "auto classifier": (
        "from transformers import AutoModelForSequenceClassification as Auto",
        "model = Auto.from_pretrained('bert')",
        ".logits",
    ),
    "peft": (
        "from peft import LoraConfig, get_peft_model\nfrom transformers import AutoModelForCausalLM",
        "model = get_peft_model(AutoModelForCausalLM.from_pretrained('gpt2'), LoraConfig())",
        ".logits",
    ),
    "torchvision": ("import torchvision", "model = torchvision.models.resnet18(weights=None)", ""),
    "torchvision by name": ("from torchvision import models", "model = getattr(models, sys.argv[1])()", ""),
    "torchvision's dict": ("from torchvision import models", "model = models.__dict__[sys.argv[1]]()", ""),
    "segmentation models": (
        "import segmentation_models_pytorch as smp",
        "model = smp.Unet('resnet34')",
        "",
    ),
    "diffusers": ("from diffusers import UNet2DModel", "model = UNet2DModel(sample_size=3)", ".sample"),
    "layer by name": (
        "",
        "model = nn.Sequential(nn.Linear(4, 8), getattr(nn, sys.argv[1])(), nn.Linear(8, 1))",
        "",
    ),
    "hydra": (
        "import hydra\nfrom omegaconf import OmegaConf\ncfg = OmegaConf.load('c.yaml')",
        "model = hydra.utils.instantiate(cfg.model)",
        "",
    ),
    "hydra's function": (
        "from hydra.utils import instantiate\nfrom omegaconf import OmegaConf\ncfg = OmegaConf.load('c.yaml')",
        "model = instantiate(cfg.model, _recursive_=False)",
        "",
    ),
    "module by name": (
        "import importlib",
        "model = getattr(importlib.import_module('nets.' + sys.argv[1]), 'Net')()",
        "",
    ),
    "unknown library": ("from mylib import build_model", "model = build_model(sys.argv[1])", ""),
    "saved model": ("", "model = torch.load('model.pt', weights_only=False)", ""),
    "saved script": ("", "model = torch.jit.load('model.pt')", ""),
    "registry": (NET, "model = {'net': Net, 'line': nn.Linear}[sys.argv[1]]()", ""),
    "registry with default": (NET, "model = {'net': Net}.get(sys.argv[1], Net)()", ""),
    "registry of a decorator": (
        """
REGISTRY = {}

def register(name):
    def decorate(cls):
        REGISTRY[name] = cls
        return cls
    return decorate

@register('net')"""
        + NET.rstrip()
        + "\n",
        "model = REGISTRY[os.environ['MODEL']]()",
        "",
    ),
    "globals": (NET, "model = globals()[sys.argv[1]]()", ""),
    "decorated factory": (
        """
def timed(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner

@timed
def make():
    return nn.Linear(4, 1)
""",
        "model = make()",
        "",
    ),
    "data parallel": ("", "model = nn.DataParallel(nn.Linear(4, 1))", ""),
    "distributed": (
        "from torch.nn.parallel import DistributedDataParallel as DDP",
        "model = DDP(nn.Linear(4, 1), device_ids=[0])",
        "",
    ),
    "sharded": (
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP",
        "model = FSDP(nn.Linear(4, 1))",
        "",
    ),
    "fully sharded": (
        "from torch.distributed.fsdp import fully_shard",
        "model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))\nfor layer in model:\n    fully_shard(layer)\nfully_shard(model)",
        "",
    ),
    "compiled": ("", "model = torch.compile(nn.Linear(4, 1), mode='max-autotune')", ""),
    "scripted": ("", "model = torch.jit.script(nn.Linear(4, 1))", ""),
    "traced": ("", "model = torch.jit.trace(nn.Linear(4, 1), torch.randn(2, 4))", ""),
    "einops": (
        "from einops.layers.torch import Rearrange",
        "model = nn.Sequential(Rearrange('b c -> b c'), nn.Linear(4, 1))",
        "",
    ),
}
HEAD = "import functools\nimport os\nimport sys\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    {clear}
    loss = F.mse_loss(model(x){output}, y)
    loss.backward()
    optimizer.step()
"""
TRAINER = """
class Trainer:
    def __init__(self, options, loader):
        self.loader = loader
        self.model = build(options)
        self.make_optimizer()

    def make_optimizer(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for x, y in self.loader:
            {clear}
            loss = F.mse_loss(self.model(x){output}, y)
            loss.backward()
            self.optimizer.step()
"""


def written(text: str, clear: str, output: str) -> str:
    return text.replace("{clear}", clear).replace("{output}", output)


def codes(program: str, **modules: str) -> list[str]:
    """What is said of a program and the modules beside it."""
    sources = {name: Source(f"{name}.py", text) for name, text in modules.items()}

    def finder(module: str, level: int, importing: str) -> Source | None:
        return sources.get(module)

    report = analyze(Source("program.py", program), None, finder)
    return [one.code for one in report.findings if one.severity in ("error", "warning")]


@pytest.mark.parametrize("name", SOURCES)
def test_loop_knows_its_model_from(name: str) -> None:
    head, make, output = SOURCES[name]
    loader = "loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1)))"
    text = f"{HEAD}{head}\n{make}\n{loader}\n" + dedent(LOOP)
    assert codes(written(text, "pass", output)) == ["GS501"]
    assert codes(written(text, "optimizer.zero_grad()", output)) == []


@pytest.mark.parametrize("name", SOURCES)
def test_trainer_knows_the_model_of_another_file_from(name: str) -> None:
    head, make, output = SOURCES[name]
    factory = f"{HEAD}{head}\n\ndef build(options):\n{indent(make, '    ')}\n    return model\n"
    text = f"{HEAD}from factory import build\n" + dedent(TRAINER)
    assert codes(written(text, "pass", output), factory=factory) == ["GS501"]
    assert codes(written(text, "self.optimizer.zero_grad()", output), factory=factory) == []
