"""The oracle tells the truth: torch's verdict, and the lines that cause a failure."""

from __future__ import annotations

import pytest
import torch

from gradsight_dev.fuzz.oracle import judge

torch.set_num_threads(1)


def check(body: str, verdict: str, family: str = "") -> None:
    """Judge a program; the lines marked `# cause` must be exactly the causing ones."""
    text = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n" + body
    marked = {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# cause")}
    truth = judge(text)
    assert truth.verdict == verdict, truth
    if family:
        assert {failure.family for failure in truth.failures} == {family}
    if marked:
        assert truth.failures[0].causes == marked


def test_write_to_a_saved_result_names_the_writing_line() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2  # cause
y += 1  # cause
y.sum().backward()
""",
        "raises",
        "version",
    )


def test_write_before_the_save_is_no_cause() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = x * 2
y += 1
z = y ** 2
y.mul_(3)  # cause
z.sum().backward()
""",
        "raises",
        "version",
    )


def test_write_inside_a_function_is_blamed_there() -> None:
    check(
        """
def scale(t):
    t.mul_(2)  # cause
    return t

x = torch.ones(3, requires_grad=True)
y = x.sigmoid()
z = scale(y)
z.sum().backward()
""",
        "raises",
        "version",
    )


def test_module_in_place_counts_where_it_runs_and_where_it_was_made() -> None:
    check(
        """
act = nn.ReLU(inplace=True)  # cause
x = torch.ones(3, requires_grad=True)
y = torch.sigmoid(x)
z = act(y)  # cause
z.sum().backward()
""",
        "raises",
        "version",
    )


@pytest.mark.parametrize(
    "optimizer", ["SGD(net.parameters(), lr=0.1)", "Adam(net.parameters(), foreach=False)"]
)
def test_optimizer_step_between_two_passes_is_the_cause(optimizer: str) -> None:
    check(
        f"""
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
opt = torch.optim.{optimizer}
out = net(torch.ones(2, 3))
a, b = out.sum(), out.mean()
a.backward(retain_graph=True)
opt.step()  # cause
b.backward()
""",
        "raises",
        "version",
    )


def test_fused_step_is_silent() -> None:
    check(
        """
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
out = net(torch.ones(2, 3))
a, b = out.sum(), out.mean()
a.backward(retain_graph=True)
opt.step()  # cause
b.backward()
""",
        "silent",
        "silent",
    )


def test_second_round_of_a_loop_fails() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
h = x * 2
total = 0
for i in range(2):
    total = total + (h ** 2).sum()
    h += 1  # cause
total.backward()
""",
        "raises",
        "version",
    )


def test_freed_graph_names_both_passes() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = (x ** 2).sum()
y.backward()  # cause
y.backward()  # cause
""",
        "raises",
        "freed",
    )


def test_freed_custom_function_names_the_passes_too() -> None:
    check(
        """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value * 2

    @staticmethod
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors  # cause
        return grad * 2

y = Double.apply(torch.ones(3, requires_grad=True)).sum()
y.backward()  # cause
y.backward()  # cause
""",
        "raises",
        "freed",
    )


def test_pass_that_keeps_the_graph_is_no_cause() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = (x ** 2).sum()
y.backward(retain_graph=True)
y.backward()  # cause
y.backward()  # cause
""",
        "raises",
        "freed",
    )


def test_carried_state_is_told_apart() -> None:
    truth = judge(
        "import torch\n"
        "w = torch.ones(3, requires_grad=True)\n"
        "h = torch.zeros(3)\n"
        "for i in range(2):\n"
        "    h = torch.tanh(h + w)\n"
        "    h.sum().backward()\n"
    )
    assert truth.failures[0].causes == {6}
    assert truth.failures[0].carried == {5, 6}


def test_graph_from_before_the_loop_is_carried_where_it_enters() -> None:
    truth = judge(
        "import torch\n"
        "w = torch.ones(3, requires_grad=True)\n"
        "y = w ** 2\n"
        "for i in range(2):\n"
        "    loss = y.sum()\n"
        "    loss.backward()\n"
    )
    assert truth.failures[0].carried == {3, 5, 6}


def test_carried_state_may_be_reported_where_it_is_stored() -> None:
    truth = judge(
        "import torch\n"
        "import types\n"
        "w = torch.ones(3, requires_grad=True)\n"
        "keeper = types.SimpleNamespace(state=torch.zeros(3))\n"
        "for i in range(2):\n"
        "    h = torch.tanh(keeper.state + w)\n"
        "    keeper.state = h\n"
        "    loss = h.sum()\n"
        "    loss.backward()\n"
    )
    assert {6, 7} <= truth.failures[0].carried


def test_tensor_of_inference_mode_is_blamed_where_it_was_made() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
with torch.inference_mode():  # cause
    y = x * 2  # cause
z = x * y  # cause
""",
        "raises",
        "inference",
    )


def test_each_path_has_its_own_causes() -> None:
    truth = judge(
        "import random\nimport torch\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "y = x.exp()\n"
        "if random.random() < 0.5:\n"
        "    y *= 2\n"
        "y += 1\n"
        "y.sum().backward()\n"
    )
    assert {failure.causes for failure in truth.failures} == {frozenset({7}), frozenset({6, 7})}


def test_write_to_data_is_silent_and_named() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = x * x
x.data.mul_(10)  # cause
y.sum().backward()
""",
        "silent",
        "silent",
    )


def test_numpy_write_is_silent_and_named() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = x ** 2
x.detach().numpy()[0] = 5  # cause
y.sum().backward()
""",
        "silent",
        "silent",
    )


def test_replaced_data_is_silent_and_named() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = x ** 2
x.data = x.data * 3  # cause
y.sum().backward()
""",
        "silent",
        "silent",
    )


def test_unseen_write_without_consequence_is_masked() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = x ** 2
x.data.mul_(2)
(y * 0).sum().backward()
""",
        "masked",
    )


def test_moved_batch_statistics_change_nothing() -> None:
    check(
        """
norm = nn.BatchNorm1d(3)
a = norm(torch.randn(4, 3))
b = norm(a)
(a.sum() + (b ** 2).sum()).backward()
""",
        "exact",
    )


def test_harmless_writes_are_exact() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = x * 2
y *= 3
y[0] = 10
y.sum().backward()
""",
        "exact",
    )


def test_detached_loss_names_the_cut() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = (x * 2).detach()  # cause
z = y + 1
z.sum().backward()  # cause
""",
        "raises",
        "no_graph",
    )


def test_forward_without_grad_mode_names_block_and_statement() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
with torch.no_grad():  # cause
    y = x * 2  # cause
y.sum().backward()  # cause
""",
        "raises",
        "no_graph",
    )


def test_decorated_function_without_grad_mode_is_blamed_with_the_calls_in_it() -> None:
    check(
        """
fc = nn.Linear(3, 1)

def score(batch):
    return fc(batch)  # cause

@torch.no_grad()  # cause
def evaluate(batch):
    return score(batch)  # cause

result = evaluate(torch.ones(3))  # cause
result.backward()  # cause
""",
        "raises",
        "no_graph",
    )


def test_leaf_without_gradient_behind_a_cut_is_labelled() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
y = torch.tensor((x * 2).tolist())
(y * w).sum().backward()
""",
        "cut",
    )


def test_unused_leaf_is_not_a_cut() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
shown = x.detach()
(2 * w).sum().backward()
""",
        "exact",
    )


def test_broken_view_names_the_write_to_its_base() -> None:
    check(
        """
x = torch.ones(4, requires_grad=True)
y = x * 2
left, right = y.chunk(2)
y.mul_(2)  # cause
(left + right).sum().backward()  # cause
""",
        "raises",
        "views",
    )


@pytest.mark.parametrize(
    ("body", "family"),
    [
        ("x += 1  # cause", "leaf"),
        ("x[0] = 1  # cause", "leaf"),
        ("a, b = (x * 2).chunk(2)\na.mul_(2)  # cause", "views"),
        ("(x * 2).expand(2, 4).add_(1)  # cause", "overlap"),
        ("torch.add(x, 1, out=torch.zeros(4))  # cause", "out"),
        ("(x * 2).backward()  # cause", "vector"),
        ("x.grad.zero_()  # cause", "none_grad"),
        ("w = torch.ones(4, requires_grad=True)\ntorch.autograd.grad(x.sum(), w)  # cause", "unused"),
    ],
)
def test_refusals_are_blamed_on_the_refused_line(body: str, family: str) -> None:
    check(f"x = torch.ones(4, requires_grad=True)\n{body}\n", "raises", family)


def test_tensor_that_stopped_being_a_leaf_is_blamed_where_it_did() -> None:
    check(
        """
w = torch.ones(3, requires_grad=True)
w = w * 0.1  # cause
opt = torch.optim.SGD([w], lr=0.1)  # cause
""",
        "raises",
        "not_a_leaf",
    )


def test_every_path_is_run() -> None:
    check(
        """
import sys
x = torch.ones(3, requires_grad=True)
y = x.exp()
if len(sys.argv) > 3:
    y *= 2  # cause
y.sum().backward()
""",
        "raises",
        "version",
    )


def test_correlated_conditions_stay_together() -> None:
    check(
        """
import random
x = torch.ones(3, requires_grad=True)
flag = random.random() < 0.5
y = x * 2 if flag else x.exp()
if flag:
    y *= 2
y.sum().backward()
""",
        "exact",
    )


def test_tensor_conditions_go_both_ways() -> None:
    check(
        """
x = torch.ones(3, requires_grad=True)
y = x.exp()
if y.sum() < 0:
    y.zero_()  # cause
y.sum().backward()
""",
        "raises",
        "version",
    )


def test_other_errors_are_foreign() -> None:
    check("torch.ones(3) @ torch.ones(4)\n", "foreign")


def test_endless_program_is_foreign() -> None:
    from gradsight_dev.fuzz.oracle import execution

    before = execution.SECONDS_PER_RUN
    execution.SECONDS_PER_RUN = 0.2
    try:
        check("while True:\n    pass\n", "foreign")
    finally:
        execution.SECONDS_PER_RUN = before


def test_nothing_leaks_from_one_program_into_the_next() -> None:
    check("torch.set_grad_enabled(False)\n", "exact")
    assert torch.is_grad_enabled()
