"""States that are carried on, whole numbers, and objects that are no tensors: what looks like a fault beside one that is."""

from __future__ import annotations

import ast
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from gradsight.detect.failed_backwards import is_start_of_sum
from gradsight.model.relevance import is_about_torch
from tests.interp.checking import check
from tests.interp.running import refused, safe


def test_a_size_of_an_unknown_mask_is_no_tensor() -> None:
    check("""
        class Coil(nn.Module):
            def region(self, mask):
                left = right = mask.shape[-2] // 2
                while mask[..., right, :]:
                    right += 1
                while mask[..., left, :]:
                    left -= 1
                return left + 1, right
            def counted(self, mask):
                first = last = mask.size(-2) // 2
                last += 1
                return first + 1, last
            def ranked(self, mask):
                first = last = mask.ndim
                last += 1
                return first + 1, last
    """)


def test_two_names_for_a_tensor_are_still_told() -> None:
    check("""
        left = right = torch.rand(3) / 2
        right += 1  # GS107
        total = left + right
    """)


def test_no_graph_goes_through_places() -> None:
    check("""
        import library
        net = nn.Linear(2, 2)
        weight = nn.Parameter(torch.rand(3))
        offsets = library.offsets(net(torch.rand(2, 2)))
        batches = torch.repeat_interleave(torch.arange(2), offsets)
        squares = batches * batches
        batches += 1
        (weight.sum() * squares.sum()).backward()
    """)


def test_the_graph_goes_through_what_is_repeated() -> None:
    refused(
        """
        weight = nn.Parameter(torch.rand(2))
        rows = torch.repeat_interleave(weight, torch.tensor([1, 2]))
        squares = rows * rows
        rows += 1  # GS101
        squares.sum().backward()
    """,
        "modified by an inplace operation",
    )


@pytest.mark.parametrize("call", ["torch.repeat_interleave(torch.arange(3), weight)", "torch.bincount(weight)", "F.one_hot(weight)"])  # fmt: skip
def test_torch_takes_whole_numbers_alone_for_places(call: str) -> None:
    import torch

    names = {"torch": torch, "F": torch.nn.functional, "weight": torch.rand(3, requires_grad=True)}
    with pytest.raises(RuntimeError):
        eval(call, names)


INPUTS = """
    class Inputs(torch.autograd.Function):
        @staticmethod
        def forward(ctx, times, weight):
            constants = tuple(value for value in (times, weight) if {0})
            if constants:
                ctx.mark_non_differentiable(*constants)
            return times, weight
        @staticmethod
        def backward(ctx, left, right):
            return left, right
    weight = nn.Parameter(torch.rand(3))
    times, kept = Inputs.apply(torch.rand(3), weight)
    (times * kept).sum().backward(){1}
"""


def test_inside_a_function_an_input_tells_that_it_requires_grad() -> None:
    safe(INPUTS.format("not value.requires_grad", ""))


def test_an_output_that_is_marked_as_constant_has_no_graph() -> None:
    refused(INPUTS.format("value is not None", "  # GS205"), "does not require grad")


PATCH = """
    patch = torch.rand(3, requires_grad=True)
    for step in range(3):
        loss = (patch * torch.rand(3)).sum()
        loss.backward()
        {0}
        with torch.no_grad():
            patch[:] = patch + {1}
"""


def test_a_gradient_that_was_read_may_be_replaced_by_zeros() -> None:
    safe(PATCH.format("moved = patch.grad.sign()\n        patch.grad = torch.zeros(3)", "moved"))


def test_a_gradient_replaced_by_zeros_and_applied_then_is_told() -> None:
    check(PATCH.format("patch.grad = torch.zeros(3)  # GS502", "patch.grad.sign()"))


CONTEXT = """
    import projectors
    class Project(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, operator{0}):
            ctx.operator = operator
            y = torch.zeros((x.shape[0],) + operator.out_shape)
            y += {1}
            return y
        @staticmethod
        def backward(ctx, grad):
            return ctx.operator.adjoint(grad), None
    class Physics(nn.Module):
        def __init__(self):
            super().__init__()
            self.width = nn.Parameter(torch.rand(1))
            self.operator = projectors.Composite(self.width * 2)
        def forward(self, x: torch.Tensor):
            return Project.apply(x, self.operator)
"""


def test_an_operator_that_is_called_is_no_tensor_on_ctx() -> None:
    check(CONTEXT.format("", "operator(x.detach())"))


def test_an_operator_that_is_declared_is_no_tensor_on_ctx() -> None:
    check(CONTEXT.format(": projectors.Operator", "operator.forward(x.detach())"))


def test_a_tensor_on_ctx_is_still_told() -> None:
    check("""
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor  # GS702
                return x * factor
            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor, None
        x = torch.rand(3, requires_grad=True)
        Scale.apply(x, torch.rand(3)).sum().backward()
    """)


def test_a_state_that_follows_its_input_is_no_target() -> None:
    safe("""
        net = nn.Linear(2, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        class Leak(nn.Module):
            def charge(self, x):
                self.v = self.v + (x - self.v) / 2.0
            def forward(self, rows):
                self.v = torch.zeros(2)
                for row in rows:
                    self.charge(row)
                return self.v
        leak = Leak()
        for step in range(3):
            opt.zero_grad()
            F.mse_loss(leak(net(torch.rand(4, 2))), torch.rand(2)).backward()
            opt.step()
    """)


ENTRIES = """
    def views(image):
        kept = []
        for view in range(3):
            {0}
            kept.append(image)
        return torch.stack(kept).sum()
    views(torch.rand(4))
"""


def test_a_write_that_settles_does_not_change_stored_entries() -> None:
    safe(ENTRIES.format("image[image == 0] = torch.nan"))


def test_a_write_that_changes_stored_entries_is_told() -> None:
    check(ENTRIES.format("image += 1  # GS107"))


def test_rows_of_one_tensor_are_different_entries() -> None:
    safe("""
        def batches(x: torch.Tensor):
            batch = []
            for i, _ in enumerate(x):
                x[i] = x[i] * 32767
                batch.append(x[i])
            return torch.stack(batch)
        batches(torch.rand(3, 2))
    """)


def test_a_state_that_gets_its_graph_in_the_second_round() -> None:
    check("""
        class Cell(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.rand(4, 4))
            def forward(self, x, state):
                if state is None:
                    state = (torch.zeros(2, 4), torch.zeros(2, 4))
                v, current = state
                return v + current, (v + current, current + x @ self.weight)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = Cell()
            def forward(self, x):
                state = None
                voltages = torch.zeros(x.shape[0], 2, 4)
                for t in range(x.shape[0]):
                    v, state = self.cell(x[t], state)
                    voltages[t] = v
                return voltages
        def train(loader):
            net = Net()
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(10):
                for x, y in loader:
                    opt.zero_grad()
                    loss = F.mse_loss(net(x), y)
                    loss.backward()
                    opt.step()
    """)


SUM = """
    def error(forwarders, target):
        total = torch.tensor(0.0)
        for forwarder in forwarders:
            {0}
        return total
    def update(optim, target: torch.Tensor, forwarders=()):
        optim.zero_grad()
        loss = error(forwarders, target)
        loss.backward(){1}
        optim.step()
"""


def test_a_sum_over_parts_that_are_not_known_may_have_a_graph() -> None:
    added, printed = (
        SUM.format(line, "") for line in ("total += forwarder(target).mean()", "print(forwarder)")
    )
    check(added)
    assert is_start_of_sum(made_in(added, "total"))
    assert not is_start_of_sum(made_in(added, "loss"))
    assert not is_start_of_sum(made_in(printed, "total"))


def made_in(program: str, label: str) -> Any:
    """A tensor that the first function of a program has made under a name."""
    function = SimpleNamespace(node=ast.parse(dedent(program)).body[0])
    return SimpleNamespace(label=label, site=SimpleNamespace(frame=SimpleNamespace(function=function)))


def test_a_constant_to_which_nothing_is_added_is_told() -> None:
    check(SUM.format("print(forwarder)", "  # GS205"))


def test_a_loss_of_data_alone_is_still_refused() -> None:
    refused(
        """
        for step in range(3):
            loss = F.mse_loss(torch.rand(3), torch.rand(3))
            loss.backward()  # GS205
    """,
        "does not require grad",
    )


NORMALISED = """
    class {0}(nn.Module):
        def __init__(self, {1}):
            super().__init__()
            self.projection = nn.Linear({1}.seq_len, {1}.pred_len)
        def forecast(self, x_enc):
            means = x_enc.mean(1, keepdim=True).detach()
            x_enc = x_enc - means
            stdev = torch.sqrt(torch.var(x_enc, dim=1, keepdim=True, unbiased=False) + 1e-5)
            x_enc /= stdev{2}
            return self.projection(x_enc) * stdev + means
        def forward(self, x_enc, x_mark_enc):
            return self.forecast(x_enc)
"""


def test_what_a_whole_model_is_applied_to_is_data() -> None:
    check(NORMALISED.format("Model", "configs", ""))


def test_what_a_part_of_a_model_is_applied_to_may_carry_a_graph() -> None:
    check(NORMALISED.format("Block", "configs", "  # GS101"))
    check(NORMALISED.format("Model", "size", "  # GS101"))
    around = """
    class Pair(nn.Module):
        def __init__(self, configs):
            super().__init__()
            self.first, self.second = Model(configs), Model(configs)
    """
    check(NORMALISED.format("Model", "configs", "  # GS101") + around)


def test_a_write_in_a_whole_model_to_what_its_layers_made_is_told() -> None:
    check("""
        class Model(nn.Module):
            def __init__(self, configs):
                super().__init__()
                self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 4)
            def forward(self, x):
                hidden = self.inner(x)
                made = self.outer(hidden)
                hidden += 1  # GS101
                return made
    """)


EXPORTED = """
    class Boxes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, boxes, scores):
            return boxes[scores.argsort()]{0}
    class Wrapped(nn.Module):
        def __init__(self, model: nn.Module):
            super().__init__()
            self.head = nn.Linear(4, 4)
        def forward(self, x):
            boxes = self.head(x)
            return Boxes.apply(boxes, boxes[:, 0]){1}
"""


def test_a_function_for_export_needs_no_backward() -> None:
    symbolic = """
        @staticmethod
        def symbolic(g, boxes, scores):
            return g.op("Boxes", boxes, scores)"""
    check(EXPORTED.format(symbolic, ""))
    check(EXPORTED.format("", "  # GS701"))


def test_a_text_of_another_framework_is_not_about_torch() -> None:
    tape = (
        "import warp as wp\nimport gymnasium\nwith wp.Tape() as tape:\n    loss = f()\ntape.backward(loss)\n"
    )
    assert not is_about_torch(tape)
    assert is_about_torch(tape + "import torch\n")
    assert is_about_torch("loss.backward()\n")
