"""A watch beside what else is in a training process: workers, compilers, mixed precision, checkpoints, hooks and modes."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import gradsight
from gradsight.session.watch_notes import notes_in
from gradsight_dev.release import needed
from tests.live.test_watch import notes_of, run

LOADING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import gradsight

if __name__ == "__main__":
    data = DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=2, num_workers=2)
    net, unused = nn.Linear(3, 1), nn.Linear(3, 1)
    opt = torch.optim.SGD([*net.parameters(), *unused.parameters()], lr=0.1)
    with gradsight.watch():
        for (x,) in data:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
    gradsight.watch()
    for (x,) in data:
        y = net(x).exp()
        y *= 2
        y.sum().backward()
"""


@pytest.mark.setups
def test_workers_of_a_data_loader_change_nothing(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(LOADING)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=300
    )
    assert "no gradient in any of 4 steps" in done.stderr
    assert done.stderr.count("gradsight: 1 problem, 4 optimizer steps watched") == 1, done.stderr
    assert "overwritten" in done.stderr.partition("RuntimeError")[2]
    assert "train.py:19" in done.stderr


TRAINING = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.LayerNorm(7), nn.Linear(7, 2))
opt = torch.optim.AdamW(net.parameters(), 1e-2)
{before}
for _ in range(3):
    opt.zero_grad()
{body}
values = [p.detach().clone() for p in net.parameters()] + [p.grad.clone() for p in net.parameters()]
"""
PLAIN = "    net(torch.randn(6, 5)).square().mean().backward()\n    opt.step()"
WAYS = {
    "autocast": (
        "",
        (
            "    with torch.autocast('cpu', dtype=torch.bfloat16):\n        loss = net(torch.randn(6, 5)).square().mean()\n"
            "    loss.backward()\n    opt.step()"
        ),
    ),
    "a scaler": (
        "scaler = torch.amp.GradScaler('cpu')",
        "    scaler.scale(net(torch.randn(6, 5)).square().mean()).backward()\n    scaler.step(opt)\n    scaler.update()",
    ),
    "a checkpoint": (
        "from torch.utils.checkpoint import checkpoint",
        "    checkpoint(net, torch.randn(6, 5), use_reentrant=False).square().mean().backward()\n    opt.step()",
    ),
    "a reentrant checkpoint": (
        "from torch.utils.checkpoint import checkpoint",
        (
            "    x = torch.randn(6, 5, requires_grad=True)\n"
            "    checkpoint(net, x, use_reentrant=True).square().mean().backward()\n    opt.step()"
        ),
    ),
    "hooks": (
        (
            "net[0].register_full_backward_hook(lambda module, inputs, outputs: None)\n"
            "net[0].weight.register_hook(lambda gradient: gradient * 2)\n"
            "net[1].register_forward_hook(lambda module, inputs, output: output + 1)"
        ),
        PLAIN,
    ),
    "saved tensors elsewhere": (
        "",
        (
            "    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):\n"
            "        loss = net(torch.randn(6, 5)).square().mean()\n    loss.backward()\n    opt.step()"
        ),
    ),
    "a thread": (
        "import threading\ndef work():\n    net(torch.randn(6, 5)).square().mean().backward()",
        "    thread = threading.Thread(target=work)\n    thread.start()\n    thread.join()\n    opt.step()",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_results_are_the_same_to_the_last_bit_beside(tmp_path: Path, way: str) -> None:
    before, body = WAYS[way]
    program = TRAINING.format(before=before, body=body)
    plain = run(tmp_path, program)["values"]
    with gradsight.watch(report=False) as watch:
        watched = run(tmp_path, program)["values"]
        report = watch.report()
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))
    assert report.is_clean, str(report)
    assert report.steps == 3
    assert "internal error" not in str(report)


BROKEN = "y = torch.sigmoid({})\ny *= 2\ny.sum().backward()\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            (
                "w = torch.ones(3, 3, requires_grad=True)\nwith torch.autocast('cpu', dtype=torch.bfloat16):\n"
                "    y = torch.sigmoid(w @ w)\n    y *= 2\n    loss = y.float().sum()\nloss.backward()\n"
            ),
            4,
        ),
        (
            (
                "from torch.utils.checkpoint import checkpoint\nw = torch.ones(3, requires_grad=True)\n"
                "y = checkpoint(lambda t: t * 2, w, use_reentrant=False).exp()\ny += 1\ny.sum().backward()\n"
            ),
            4,
        ),
    ],
    ids=["autocast", "after a checkpoint"],
)
def test_the_line_is_named_beside(tmp_path: Path, text: str, line: int) -> None:
    assert f"overwritten train.py:{line} ->" in notes_of(tmp_path, text).replace(f"{tmp_path}/", "")


def test_a_compiled_part_is_said_to_be_out_of_sight(tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    before = "step = torch.compile(lambda x: net(x).square().mean(), backend='eager')"
    program = TRAINING.format(before=before, body="    step(torch.randn(6, 5)).backward()\n    opt.step()")
    plain = run(tmp_path, program)["values"]
    torch._dynamo.reset()
    with gradsight.watch(report=False) as watch:
        watched = run(tmp_path, program)["values"]
        said = str(watch.report())
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))
    assert "a part of the program was compiled: what runs inside it is not seen" in said


class Counting(TorchFunctionMode):
    """A mode of somebody else."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


class Dispatching(TorchDispatchMode):
    """A mode of somebody else, below autograd."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", [Counting, Dispatching])
def test_modes_of_others_hear_as_much_as_before_and_stay(tmp_path: Path, kind: type[Any]) -> None:
    program = TRAINING.format(before="", body=PLAIN)
    with kind() as alone:
        run(tmp_path, program)
    with kind() as outside:
        with gradsight.watch(report=False):
            run(tmp_path, program)
            with kind() as inside:
                run(tmp_path, program)
        assert _get_current_function_mode_stack() == ([outside] if kind is Counting else [])
        assert _get_current_dispatch_mode_stack() == ([outside] if kind is Dispatching else [])
    assert inside.calls == alone.calls
    assert outside.calls >= alone.calls


@pytest.mark.parametrize("every", [1, 2])
def test_a_default_device_is_the_default_for_optimizers_too(every: int) -> None:
    seen: list[torch.Tensor] = []
    with gradsight.watch(every=every, report=False):
        torch.set_default_device("meta")
        try:
            weight = torch.nn.Parameter(torch.ones(2))
            optimizer = torch.optim.SGD([weight])
            optimizer.register_step_pre_hook(lambda *args: seen.append(torch.ones(1)))
            for _ in range(3):
                weight.grad = torch.ones(2)
                optimizer.step()
                assert torch.ones(1).is_meta
        finally:
            torch.set_default_device(None)
    assert [each.is_meta for each in seen] == [True] * 3
    assert _get_current_function_mode_stack() == []


def test_a_block_of_another_mode_may_end_before_the_watch() -> None:
    with Counting() as theirs:
        watch = gradsight.watch(every=2, report=False)
        net = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(3):
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    assert theirs not in _get_current_function_mode_stack()
    watch.stop()
    assert _get_current_function_mode_stack() == []


def test_a_mode_that_is_entered_later_and_left_later_is_not_disturbed() -> None:
    watch = gradsight.watch(report=False)
    with Counting() as theirs:
        watch.stop()
        net = nn.Linear(2, 1)
        net(torch.ones(1, 2)).sum().backward()
        assert theirs.calls > 0
    assert _get_current_function_mode_stack() == []


ALONE = """
import sys
import torch, torch._dynamo
{needs}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"refused: {{name}}")
sys.meta_path.insert(0, Refuse())
import gradsight
with gradsight.watch():
    net, unused = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD([*net.parameters(), *unused.parameters()], lr=0.1)
    (net(torch.ones(1, 2)) + unused(torch.ones(1, 2)).detach()).sum().backward()
    optimizer.step()
    print("said:", torch.ones(2).add_(1).sum().item(), len(gradsight.report().parameters))
gradsight.watch()
w = torch.ones(3, requires_grad=True)
y = w.exp()
y += 1
y.sum().backward()
"""


@pytest.mark.setups
def test_nothing_but_torch_and_the_standard_library_is_imported(tmp_path: Path) -> None:
    of_torch = {each.name.replace("-", "_").lower() for each in needed("torch")}
    others = (
        set(metadata.packages_distributions())
        - of_torch
        - {"gradsight", "torch", "torchgen", "functorch", "numpy"}
    )
    assert {"libcst", "pygls", "lsprotocol", "attrs", "rich", "yaml"} <= others
    program = tmp_path / "program.py"
    program.write_text(ALONE.format(needs=f"REFUSED = {others!r}"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "said: 4.0 0" in done.stdout, done.stderr
    assert "cuts the path from the loss to `unused.weight`" in done.stderr, done.stderr
    assert "gradsight: 1 problem, 1 optimizer step watched" in done.stderr, done.stderr
    assert "RuntimeError: one of the variables needed" in done.stderr, done.stderr
    (note,) = notes_in(done.stderr.partition("RuntimeError: ")[2])
    assert note.said.startswith("`y += 1` overwrites the output of `exp`")
    assert "internal error" not in done.stderr


@pytest.mark.setups
def test_another_import_there_would_be_refused(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    text = ALONE.format(needs="REFUSED = ['libcst']")
    program.write_text(text.replace("import gradsight\n", "import libcst\n", 1))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: refused: libcst" in done.stderr
