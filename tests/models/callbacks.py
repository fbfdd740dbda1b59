"""The callbacks of `docs/watch.md` in the trainers that they are written for: each must name the layer that nothing trains.

    python tests/models/callbacks.py

Run by `make test-models`, in the environment that has the libraries.  The blocks of the page are executed as they stand.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "server"))

import torch  # noqa: E402
from torch import nn  # noqa: E402

WANTED = "b.bias`: no gradient in any of"


class Half(nn.Module):
    """One layer trains, the other is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 1)
        self.b = nn.Linear(3, 1)

    def forward(self, x: Any = None, labels: Any = None) -> dict[str, Any]:
        return {"loss": (self.a(x) - labels).square().mean()}


def block(title: str) -> dict[str, Any]:
    """The names that a block of the page defines; every step is watched."""
    page = (ROOT / "docs" / "watch.md").read_text("utf-8")
    match = re.search(rf'```py(?:thon)? title="{title}"\n(.*?)```', page, re.DOTALL)
    assert match is not None, title
    written = [line for line in match.group(1).splitlines() if line.strip()]
    assert len(written) <= 10, f"{title} has more than ten lines"
    space: dict[str, Any] = {"__name__": "block"}
    exec(compile(match.group(1).replace("every=10", "every=1"), title, "exec"), space)
    return space


def lightning() -> None:
    from lightning.pytorch import LightningModule, Trainer

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Half()

        def training_step(self, batch: Any, index: int) -> Any:
            return self.net(batch, torch.ones(1))["loss"]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    callback = block("lightning_report.py")["GradSightCallback"]()
    trainer = Trainer(max_steps=3, callbacks=[callback], accelerator="cpu", **quiet)
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(8, 3), batch_size=2))


def transformers() -> None:
    from transformers import Trainer, TrainingArguments

    data = [{"x": torch.ones(3), "labels": torch.ones(1)} for _ in range(8)]
    options = TrainingArguments(
        tempfile.mkdtemp(), max_steps=3, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True
    )
    callback = block("transformers_report.py")["GradSightCallback"]()
    Trainer(Half(), options, train_dataset=data, callbacks=[callback]).train()


def accelerate() -> None:
    from accelerate import Accelerator

    def train(accelerator: Any) -> None:
        net = Half()
        net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in range(3):
            optimizer.zero_grad()
            accelerator.backward(net(torch.ones(2, 3), torch.ones(2, 1))["loss"])
            optimizer.step()
        trained.append(net)

    trained: list[Any] = []
    block("accelerate_report.py")["watched"](Accelerator(cpu=True), train)


def main() -> int:
    failed = []
    for check in (lightning, transformers, accelerate):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            check()
        print(f"{check.__name__}: {'well' if WANTED in said.getvalue() else said.getvalue()}")
        if WANTED not in said.getvalue():
            failed.append(check.__name__)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
