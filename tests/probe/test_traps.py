"""Behaviours of torch that would make a naive recorder lie, each with the program that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gradsight.agent.features import ENGINE_FUNCTION, SAVED_DATA
from gradsight.agent.graph import Geometry, overlaps
from gradsight.probe import deep
from gradsight.probe.outcome import Observed, Outcome, Raised
from gradsight.probe.request import Level, ProbeRequest
from gradsight.probe.standby import Standby
from tests.probe.expectation import FIXTURES, PYTHON, check, expected_of, programs


def run(standby: Standby, text: str, tmp_path: Path, level: Level = "default", **options: object) -> Outcome:
    script = tmp_path / "program.py"
    script.write_text(text, "utf-8")
    request = ProbeRequest(PYTHON, script=str(script), timeout=60, level=level, seed=0, **options)  # type: ignore[arg-type]
    return standby.run(request)


def codes(outcome: Outcome) -> list[tuple[str, int]]:
    assert isinstance(outcome, (Observed, Raised)), outcome
    assert outcome.report["internal_error"] == ""
    return [(fault["code"], fault["location"]["row"]) for fault in outcome.report["faults"]]


def test_foreach_operators_keep_their_version_bump(standby: Standby, tmp_path: Path) -> None:
    text = (
        "import torch\nx = torch.ones(3, requires_grad=True)\ny = torch.exp(x)\n"
        "with torch.no_grad():\n    torch._foreach_mul_([y], 2.0)\n"
        "assert y._version == 1\ny.sum().backward()\n"
    )
    assert codes(run(standby, text, tmp_path)) == [("GS101", 5)]


@pytest.mark.parametrize("options", ["foreach=True", "foreach=False", "fused=True"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_step_between_backwards_is_seen_in_every_implementation(
    standby: Standby, tmp_path: Path, name: str, options: str
) -> None:
    text = (
        "import torch\nfrom torch import nn\n"
        "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))\n"
        f"optimizer = torch.optim.{name}(net.parameters(), lr=0.1, {options})\n"
        "out = net(torch.ones(2, 3))\nout[:, 0].sum().backward(retain_graph=True)\n"
        "optimizer.step()\nout[:, 1].sum().backward()\n"
    )
    outcome = run(standby, text, tmp_path)
    assert codes(outcome) == [("GS106", 7)]
    (fault,) = outcome.report["faults"]
    assert fault["evidence"]["parameter"] == "net.2.weight"
    assert "moves `net.2.weight`, which `net(torch.ones(2, 3))` saved (line 5)" in fault["message"]
    # Fused steps leave no version behind: torch computes on, with the wrong values.
    assert isinstance(outcome, Observed if "fused" in options else Raised)


def test_pack_hooks_of_the_deep_look_check_versions_themselves(standby: Standby) -> None:
    for path in programs("raising"):
        faults = expected_of(path.read_text("utf-8")).faults
        # The hooks see one saved tensor at a time: what torch would refuse next stays unknown to them.
        if len(faults) == 1 and {code for code, _ in faults} <= {"GS101", "GS106"}:
            check(standby, path, "deep")


def test_hooks_that_hand_back_the_same_memory_make_the_gradient_wrong(
    standby: Standby, tmp_path: Path
) -> None:
    # On the CPU `save_on_cpu` copies nothing, and torch does not check the version behind it.
    text = (
        "import torch\nx = torch.ones(3, requires_grad=True)\n"
        "with torch.autograd.graph.save_on_cpu():\n    y = torch.exp(x)\n"
        "y.add_(1.0)\ny.sum().backward()\nassert x.grad[0] > 3.7\n"
    )
    outcome = run(standby, text, tmp_path)
    assert codes(outcome) == [("GS104", 5)]
    assert isinstance(outcome, Observed)


def test_reused_addresses_are_not_mistaken_for_old_storages(standby: Standby) -> None:
    check(standby, FIXTURES / "safe" / "many_small_storages.py")


def test_running_statistics_are_no_silent_change(standby: Standby) -> None:
    path = FIXTURES / "safe" / "batch_norm_twice_before_backward.py"
    check(standby, path)
    request = ProbeRequest(PYTHON, script=str(path), timeout=60, seed=0)
    outcome = deep.run(request, runner=standby.run)
    assert codes(outcome) == []


@pytest.mark.parametrize(
    ("left", "right", "shared"),
    [
        (Geometry(0, (2, 2), (6, 1), 4), Geometry(2, (2, 2), (6, 1), 4), False),
        (Geometry(0, (2, 3), (6, 1), 4), Geometry(2, (2, 2), (6, 1), 4), True),
        (Geometry(0, (0,), (1,), 4), Geometry(0, (4,), (1,), 4), False),
        (Geometry(0, (4,), (2,), 4), Geometry(1, (4,), (2,), 4), False),
        (Geometry(0, (4,), (1,), 8), Geometry(6, (4,), (1,), 4), True),
        (Geometry(3, (), (), 4), Geometry(3, (), (), 4), True),
    ],
)
def test_interleaved_views_share_no_element(left: Geometry, right: Geometry, shared: bool) -> None:
    assert overlaps(left, right) is shared
    assert overlaps(right, left) is shared


def test_overlap_agrees_with_torch_on_random_views() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        base = torch.zeros(6, 8)
        views = []
        for _ in range(2):
            row, column, step = (int(torch.randint(1, 5, (), generator=generator)) for _ in range(3))
            views.append(base[row - 1 :: step, : column * 2 : step])
        first, second = views
        first.fill_(1.0)
        expected = bool(second.any())
        geometries = [Geometry(int(v.storage_offset()), tuple(v.shape), tuple(v.stride()), 4) for v in views]
        assert overlaps(*geometries) is expected


def test_checkpointed_parts_are_not_run_by_the_audit(standby: Standby, tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch.utils.checkpoint import checkpoint\ncalls = []\n"
        "def part(h):\n    calls.append(1)\n    return torch.sin(h) * h\n"
        "x = torch.ones(3, requires_grad=True)\nw = torch.ones(3, requires_grad=True)\n"
        "for _ in range(2):\n"
        "    loss = checkpoint(part, x * w, use_reentrant=False).sum()\n"
        "    loss.backward()\n    with torch.no_grad():\n        x -= 0.1 * x.grad\n        w -= 0.1 * w.grad\n"
        "    x.grad = w.grad = None\n"
        "assert len(calls) == 4, calls\n"
    )
    outcome = run(standby, text, tmp_path)
    assert codes(outcome) == []
    assert isinstance(outcome, Observed)


CHECKPOINTED = "import torch\nfrom torch import nn\nfrom torch.utils.checkpoint import checkpoint\ntorch.manual_seed(0)\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # The second time the block finds another number: 4.5 for 3.0.
        (
            (
                "w = torch.full((3,), 2.0, requires_grad=True)\nseen = torch.ones(3)\ndef part(x):\n    seen.add_(1)\n"
                "    return x * seen\ncheckpoint(part, w * 1.5, use_reentrant=False).sum().backward()\nassert w.grad[0] == 4.5\n"
            ),
            [("GS104", 8)],
        ),
        (
            (
                "v = torch.ones(3, requires_grad=True)\nopt = torch.optim.SGD([v], lr=0.5)\n"
                "y = checkpoint(lambda x: x * v, torch.ones(3, requires_grad=True) * 2, use_reentrant=False)\n"
                "v.grad = torch.ones(3)\nopt.step()\ny.sum().backward()\n"
            ),
            [("GS106", 9)],
        ),
        # What the block writes is the same each time, statistics have no part in the gradient, and a step comes afterwards.
        (
            (
                "kept = torch.zeros(4, 3)\nnet = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))\n"
                "def part(x):\n    h = net(x)\n    h.relu_()\n    kept.copy_(h.detach())\n    return h * kept * h\n"
                "x, opt = torch.randn(4, 3, requires_grad=True), torch.optim.SGD(net.parameters(), lr=0.1)\n"
                "for _ in range(3):\n    y = checkpoint(part, checkpoint(part, x, use_reentrant=False), use_reentrant=False)\n"
                "    opt.zero_grad()\n    y.sum().backward()\n    opt.step()\n"
            ),
            [],
        ),
    ],
    ids=["a count that the block reads", "a step before the block runs again", "the same numbers each time"],
)
def test_a_checkpointed_block_that_computes_something_else_the_second_time_is_seen(
    standby: Standby, tmp_path: Path, text: str, found: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, CHECKPOINTED + text, tmp_path)) == found


def test_mapped_classes_stay_classes(standby: Standby, tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n"
        "assert isinstance(torch.autocast, type) and isinstance(torch.amp.GradScaler, type)\n"
        "assert issubclass(torch.cuda.amp.GradScaler, torch.amp.GradScaler)\n"
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "net = nn.Linear(3, 1).cuda()\nx = torch.ones(4, 3, device='cuda:0').to(device)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nscaler = torch.amp.GradScaler('cuda')\n"
        "for _ in range(2):\n    optimizer.zero_grad()\n"
        "    with torch.autocast('cuda', dtype=torch.float16):\n        loss = net(x).float().pow(2).mean()\n"
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n"
        "torch.cuda.synchronize()\n"
    )
    outcome = run(standby, text, tmp_path, map_cuda=True)
    assert codes(outcome) == []
    assert any("CUDA" in note for note in outcome.report["notes"])
    assert any("bfloat16" in note for note in outcome.report["notes"])


def test_missing_cuda_is_reported_when_nobody_maps_it(standby: Standby, tmp_path: Path) -> None:
    outcome = run(standby, "import torch\ntorch.ones(2, device='cuda')\n", tmp_path)
    assert isinstance(outcome, Raised)
    assert "CUDA" in outcome.report["error"]["message"]


def test_probe_runs_on_one_thread(standby: Standby, tmp_path: Path) -> None:
    outcome = run(standby, "import torch\nassert torch.get_num_threads() == 1\n", tmp_path)
    assert isinstance(outcome, Observed)


@pytest.mark.parametrize("without", [(SAVED_DATA,), (ENGINE_FUNCTION,), (SAVED_DATA, ENGINE_FUNCTION)])
@pytest.mark.parametrize("level", ["fast", "default"])
def test_blame_without_the_newer_parts_of_torch(
    standby: Standby, without: tuple[str, ...], level: Level
) -> None:
    for name in ("exp_scaled_in_place", "step_between_two_losses", "write_through_view_of_base"):
        path = FIXTURES / "raising" / f"{name}.py"
        expected = expected_of(path.read_text("utf-8"))
        request = ProbeRequest(PYTHON, script=str(path), timeout=60, level=level, without=without)
        outcome = standby.run(request)
        assert codes(outcome) == sorted(expected.faults)
        steps = {(step["role"], step["location"]["row"]) for step in outcome.report["faults"][0]["related"]}
        assert expected.roles <= steps


@pytest.mark.parametrize(("replaced", "expected"), [("z.data.clone()", []), ("torch.zeros(3)", ["GS104"])])
def test_a_copy_under_what_was_saved_is_no_fault_where_torch_does_not_show_what_it_saved(
    standby: Standby, tmp_path: Path, replaced: str, expected: list[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\nu = torch.ones(3, requires_grad=True)\nz = u * 3\n"
        f"e = torch.mul(u, z)\nz.data = {replaced}\ne.sum().backward()\n"
    )
    request = ProbeRequest(PYTHON, script=str(path), timeout=60, without=(SAVED_DATA,))
    assert [code for code, _ in codes(standby.run(request))] == expected


def test_numbers_and_arrays_stay_what_they_are_when_pickled(standby: Standby, tmp_path: Path) -> None:
    text = (
        "import copy, json, pickle\nimport numpy\nimport torch\n"
        "x = torch.linspace(0.1, 0.9, 3, requires_grad=True)\n"
        "number, array = (x * x).sum().item(), (x * x).detach().numpy()\n"
        "assert type(pickle.loads(pickle.dumps(number))) is float and type(copy.deepcopy(number)) is float\n"
        "assert type(pickle.loads(pickle.dumps(array))) is numpy.ndarray\n"
        "assert json.loads(json.dumps(number)) == number and isinstance(number, float)\n"
        "assert numpy.concatenate([array, array]).shape == (6,) and (array + 1).mean() > 1\n"
    )
    outcome = run(standby, text, tmp_path)
    assert codes(outcome) == []
    assert isinstance(outcome, Observed), outcome.report["error"]


def test_function_transforms_work_under_every_level(standby: Standby, tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch.func import grad, vmap, jacrev, functional_call\n"
        "net = torch.nn.Linear(3, 1)\nparams = dict(net.named_parameters())\n"
        "def loss(params, x):\n    return functional_call(net, params, (x,)).pow(2).sum()\n"
        "each = vmap(grad(loss), in_dims=(None, 0))(params, torch.ones(4, 3))\n"
        "assert each['weight'].shape == (4, 1, 3)\nassert jacrev(torch.sin)(torch.ones(2)).shape == (2, 2)\n"
    )
    for level in ("fast", "default", "deep"):
        outcome = run(standby, text, tmp_path, level)
        assert codes(outcome) == []
        assert isinstance(outcome, Observed), outcome.report["error"]
