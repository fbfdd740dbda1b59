"""Copies without a graph on the way to what a forward returns, though its parameters get gradients on other ways too."""

from __future__ import annotations

from tests.interp.checking import check

ATTENTION = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
"""


def test_weights_are_copied_out_of_the_graph() -> None:
    check(
        ATTENTION
        + """
        w = torch.tensor((q @ k.mT).softmax(-1))  # GS201
        return self.out(w @ v)
"""
    )


def test_weights_are_detached_on_purpose() -> None:
    check(
        ATTENTION
        + """
        w = (q @ k.mT).softmax(-1).detach().clone()
        return self.out(w @ v)
"""
    )


def test_constant_factor_is_made_of_a_number() -> None:
    check(
        ATTENTION
        + """
        scale = torch.tensor(q.abs().max().item())
        return self.out((q / scale @ k.mT).softmax(-1) @ v)
"""
    )


def test_copy_is_kept_and_not_returned() -> None:
    check(
        ATTENTION
        + """
        self.seen = torch.tensor(q)
        return self.out((q @ k.mT).softmax(-1) @ v)
"""
    )


def test_copies_of_sizes_and_places_carry_no_gradient_anyway() -> None:
    check(
        ATTENTION
        + """
        length, best = torch.tensor(q.shape[-1]), torch.tensor(q.argmax(-1))
        return self.out((q @ k.mT).softmax(-1) @ v) / length, best
"""
    )


LOSS = """
from dataclasses import dataclass

@dataclass
class Output:
    loss: torch.Tensor = None
    logits: torch.Tensor = None

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, y):
        logits = self.fc(x)
        loss = F.mse_loss(logits, y)
"""


def test_loss_is_returned_as_a_number_beside_its_logits() -> None:
    check(
        LOSS
        + """
        loss = torch.tensor(loss.item())  # GS202
        return Output(loss=loss, logits=logits)
"""
    )


def test_loss_of_a_dict_is_returned_as_a_number() -> None:
    check(
        LOSS
        + """
        return {"loss": torch.tensor(loss.item()), "logits": logits}  # GS202
"""
    )


def test_number_beside_the_loss_is_there_to_be_looked_at() -> None:
    check(
        LOSS
        + """
        return {"loss": loss, "loss_value": torch.tensor(loss.item()), "mse": torch.tensor(loss.item())}
"""
    )


def test_loss_of_a_tuple_is_returned_as_a_number() -> None:
    check(
        LOSS
        + """
        return torch.tensor(loss.item()), logits  # GS202
"""
    )


def test_loss_is_differentiated_before_it_becomes_a_number() -> None:
    check(
        LOSS
        + """
        loss.backward()
        return torch.tensor(loss.item()), logits
"""
    )


def test_another_number_is_there_to_be_looked_at() -> None:
    check(
        LOSS
        + """
        distance = (logits - y).abs().mean()
        return {"distance": torch.tensor(distance.item()), "logits": logits}
"""
    )
