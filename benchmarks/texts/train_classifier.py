"""Trains a small residual network on synthetic pictures: the text that the latency benchmark types into."""

import argparse
import math
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    """Everything that can be chosen on the command line."""

    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 0.1
    weight_decay: float = 5e-4
    momentum: float = 0.9
    warmup: int = 1
    classes: int = 10
    width: int = 16
    depth: int = 2
    dropout: float = 0.1
    smoothing: float = 0.1
    mixup: float = 0.2
    clip: float = 1.0
    ema: float = 0.99
    folder: Path = field(default_factory=lambda: Path("runs"))


class Pictures(Dataset):
    """Random blobs whose class is the quadrant and the colour they have most of."""

    def __init__(self, size: int, classes: int, seed: int) -> None:
        self.size = size
        self.classes = classes
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.rand(size, 3, 32, 32, generator=generator)
        self.labels = torch.randint(0, classes, (size,), generator=generator)
        for index in range(size):
            label = int(self.labels[index])
            channel, corner = label % 3, label % 4
            top, left = 16 * (corner // 2), 16 * (corner % 2)
            self.images[index, channel, top : top + 16, left : left + 16] += 0.5

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int):
        image = self.images[index]
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        return image, self.labels[index]


class SqueezeExcite(nn.Module):
    """Weighs channels by what the whole picture holds."""

    def __init__(self, channels: int, reduction: int = 4) -> None:
        super().__init__()
        hidden = max(4, channels // reduction)
        self.down = nn.Linear(channels, hidden)
        self.up = nn.Linear(hidden, channels)

    def forward(self, x):
        summary = x.mean(dim=(2, 3))
        gate = torch.sigmoid(self.up(F.relu(self.down(summary))))
        return x * gate[:, :, None, None]


class Block(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.weigh = SqueezeExcite(outputs)
        self.drop = nn.Dropout2d(dropout)
        self.around = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.around = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x):
        out = F.relu(self.norm1(self.conv1(x)))
        out = self.drop(out)
        out = self.norm2(self.conv2(out))
        out = self.weigh(out)
        out = out + self.around(x)
        return F.relu(out)


class Network(nn.Module):
    """A stem, three stages and a head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.width
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        stages = []
        inputs = width
        for stage in range(3):
            outputs = width * 2**stage
            for index in range(config.depth):
                stride = 2 if stage and index == 0 else 1
                stages.append(Block(inputs, outputs, stride, config.dropout))
                inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, config.classes)
        self.apply(self.initialise)

    @staticmethod
    def initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)

    def features(self, x):
        x = F.relu(self.norm(self.stem(x)))
        return self.stages(x)

    def forward(self, x):
        x = self.features(x)
        x = x.mean(dim=(2, 3))
        return self.head(x)


class MovingAverage:
    """A copy of the model whose weights follow slowly."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.shadow = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for name, value in model.state_dict().items():
            shadow = self.shadow[name]
            if shadow.dtype.is_floating_point:
                shadow.mul_(self.decay).add_(value, alpha=1 - self.decay)
            else:
                shadow.copy_(value)

    def apply_to(self, model: nn.Module) -> None:
        model.load_state_dict(self.shadow)


class Meter:
    """A mean that forgets nothing and keeps no graph."""

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def add(self, value: float, count: int = 1) -> None:
        self.total += value * count
        self.count += count

    @property
    def mean(self) -> float:
        return self.total / max(1, self.count)


def mixed(images, labels, alpha: float):
    """Pairs of pictures laid over each other, with both labels and how much of the first there is."""
    if alpha <= 0:
        return images, labels, labels, 1.0
    share = float(torch.distributions.Beta(alpha, alpha).sample())
    order = torch.randperm(images.size(0))
    return share * images + (1 - share) * images[order], labels, labels[order], share


def smooth_loss(logits, labels, smoothing: float):
    """Cross entropy in which every class gets a little of the truth."""
    log_probabilities = F.log_softmax(logits, dim=-1)
    chosen = -log_probabilities.gather(-1, labels[:, None]).squeeze(-1)
    spread = -log_probabilities.mean(dim=-1)
    return ((1 - smoothing) * chosen + smoothing * spread).mean()


def mixed_loss(logits, first, second, share: float, smoothing: float):
    """The loss of a pair, by shares."""
    loss = share * smooth_loss(logits, first, smoothing)
    if share < 1:
        loss = loss + (1 - share) * smooth_loss(logits, second, smoothing)
    return loss


def learning_rate_at(step: int, steps: int, warmup: int) -> float:
    """Rises over the warm-up, then falls along a cosine."""
    if step < warmup:
        return (step + 1) / max(1, warmup)
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.5 * (1 + math.cos(math.pi * progress))


def accuracy(logits, labels) -> float:
    """The share of right answers."""
    return (logits.argmax(dim=-1) == labels).float().mean().item()


def train_epoch(model, loader, optimizer, schedule, average, config: Config) -> Meter:
    """One way through the data."""
    model.train()
    losses = Meter()
    for images, labels in loader:
        pictures, first, second, share = mixed(images, labels, config.mixup)
        logits = model(pictures)
        loss = mixed_loss(logits, first, second, share, config.smoothing)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        schedule.step()
        average.update(model)
        losses.add(loss.item(), images.size(0))
    return losses


@torch.no_grad()
def evaluate(model, loader) -> tuple[float, float]:
    """Loss and accuracy on data that is not learned from."""
    model.eval()
    losses, right = Meter(), Meter()
    for images, labels in loader:
        logits = model(images)
        losses.add(F.cross_entropy(logits, labels).item(), images.size(0))
        right.add(accuracy(logits, labels), images.size(0))
    return losses.mean, right.mean


def save(model, optimizer, epoch: int, config: Config) -> Path:
    """Write everything that is needed to go on."""
    config.folder.mkdir(parents=True, exist_ok=True)
    path = config.folder / f"epoch-{epoch}.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)
    return path


def saliency(model, image, label: int):
    """How much each pixel matters for one class."""
    picture = image.clone().requires_grad_()
    score = model(picture[None])[0, label]
    (gradient,) = torch.autograd.grad(score, picture)
    strength = gradient.abs().amax(dim=0)
    return strength / strength.max()


def read_arguments() -> Config:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    return Config(
        epochs=args.epochs, batch_size=args.batch_size, learning_rate=args.learning_rate, width=args.width
    )


def main() -> None:
    config = read_arguments()
    torch.manual_seed(0)
    train_data = Pictures(256, config.classes, seed=1)
    test_data = Pictures(64, config.classes, seed=2)
    train_loader = DataLoader(train_data, config.batch_size, shuffle=True)
    test_loader = DataLoader(test_data, config.batch_size)
    model = Network(config)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=config.learning_rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )
    steps = config.epochs * len(train_loader)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate_at(step, steps, config.warmup * len(train_loader))
    )
    average = MovingAverage(model, config.ema)
    for epoch in range(config.epochs):
        started = time.time()
        losses = train_epoch(model, train_loader, optimizer, schedule, average, config)
        loss, right = evaluate(model, test_loader)
        print(f"{epoch}: {losses.mean:.3f} {loss:.3f} {100 * right:.1f} % in {time.time() - started:.1f} s")
        save(model, optimizer, epoch, config)
    average.apply_to(model)
    print("averaged:", evaluate(model, test_loader))
    print("saliency:", saliency(model, test_data.images[0], int(test_data.labels[0])).mean().item())


if __name__ == "__main__":
    main()
