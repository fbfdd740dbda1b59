"""Programs after further reports: who is trained by whom, and edits of gradients that come too late."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradsight.detect.sparse_gradients import REFUSING
from tests.interp.checking import check

GROUPS = """
class Fuse(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.ones(2))
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x) * self.mix[0]

model = nn.Sequential(Fuse(), Fuse())
weights, biases = [], []
for name, module in model.named_modules():
    if hasattr(module, "bias") and isinstance(module.bias, nn.Parameter):
        biases.append(module.bias)
    if hasattr(module, "weight") and isinstance(module.weight, nn.Parameter):
        weights.append(module.weight){more}
optimizer = torch.optim.SGD(weights, lr=0.1){said}
optimizer.add_param_group({{"params": biases}})
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(2, 3)).sum().backward()
    optimizer.step()
"""


def test_groups_that_are_added_before_the_first_step_show_what_is_left_out() -> None:
    check(GROUPS.format(more="", said="  # GS512"))


def test_groups_that_hold_everything_between_them_are_silent() -> None:
    more = "\n    if isinstance(module, Fuse):\n        weights.append(module.mix)"
    check(GROUPS.format(more=more, said=""))


def test_who_adds_groups_while_training_may_add_more() -> None:
    check(
        """
        first, second = nn.Linear(3, 3), nn.Linear(3, 1)
        optimizer = torch.optim.SGD([second.weight], lr=0.1)
        for step in range(8):
            optimizer.zero_grad()
            second(first(torch.randn(2, 3))).sum().backward()
            optimizer.step()
            if step == 1:
                optimizer.add_param_group({"params": [second.bias]})
            if step == 5:
                optimizer.add_param_group({"params": first.parameters()})
        """
    )


ACTOR = """
critic, actor = nn.Linear(5, 1), nn.Linear(3, 2)
critic_optimizer = torch.optim.Adam(critic.parameters())
actor_optimizer = torch.optim.Adam(actor.parameters())
for step in range(3):
    states, actions = torch.randn(8, 3), torch.randn(8, 2)
    critic_optimizer.zero_grad()
    critic(torch.cat([states, actions], 1)).pow(2).mean().backward()
    {before}
    policy_loss = -critic(torch.cat([states, actor(states)], 1)).mean()
    {clear}
    policy_loss.backward(){said}
    {after}
    critic_optimizer.step()
    actor_optimizer.step()
"""


def test_the_policys_loss_adds_to_the_critic_before_its_step() -> None:
    check(ACTOR.format(before="pass", clear="actor_optimizer.zero_grad()", said="  # GS508", after="pass"))


def test_a_critic_that_the_policy_does_not_add_to_is_silent() -> None:
    freeze, thaw = "critic.requires_grad_(False)", "critic.requires_grad_(True)"
    check(ACTOR.format(before=freeze, clear="actor_optimizer.zero_grad()", said="", after=thaw))
    source = ACTOR.format(
        before="critic_optimizer.step()", clear="actor_optimizer.zero_grad()", said="", after="pass"
    )
    check(source.replace("    critic_optimizer.step()\n    actor_optimizer", "    actor_optimizer"))


def test_an_encoder_of_two_heads_may_learn_from_both() -> None:
    check(
        """
        encoder, one, two = nn.Linear(5, 5), nn.Linear(5, 1), nn.Linear(5, 1)
        first = torch.optim.Adam([*encoder.parameters(), *one.parameters()])
        second = torch.optim.Adam(two.parameters())
        for step in range(3):
            x = torch.randn(8, 5)
            first.zero_grad()
            one(encoder(x)).pow(2).mean().backward()
            second.zero_grad()
            two(encoder(x)).pow(2).mean().backward()
            first.step()
            second.step()
        """
    )


def test_torch_applies_both_losses_to_the_critic() -> None:
    critic, actor = nn.Linear(3, 1, bias=False), nn.Linear(3, 3)
    optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
    critic(torch.zeros(2, 3)).sum().backward()
    optimizer.zero_grad()
    (-critic(actor(torch.ones(2, 3))).mean()).backward()
    assert critic.weight.grad is not None
    assert critic.weight.grad.abs().sum() > 0


EDIT = """
net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
norms = []
for batch in torch.randn(3, 4, 2):
    net(batch).mean().backward()
    {first}
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.weight.grad.data.add_(0.1 * torch.sign(module.weight.data)){said}
    {second}
    optimizer.zero_grad()
"""


def test_a_penalty_that_is_added_after_the_step_is_lost() -> None:
    check(EDIT.format(first="optimizer.step()", second="pass", said="  # GS513"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("pass", "optimizer.step()"),
        ("optimizer.step()", "norms.append(net[1].weight.grad.norm().item())"),
    ],
)
def test_a_gradient_that_is_changed_and_used_is_silent(first: str, second: str) -> None:
    check(EDIT.format(first=first, second=second, said=""))


MERGE = """
class Merge(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self._layers = {made}{said}
        for layer in layers:
            self._layers.append(layer)

    def forward(self, x):
        return sum(layer(x) for layer in self._layers)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {towers} = [nn.Linear(4, 4) for _ in range(2)]
        self.merge = Merge({given})
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.merge(x))

net = Net()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(3, 4)).pow(2).mean().backward()
    optimizer.step()
"""


def test_layers_that_were_handed_in_and_kept_in_a_list_never_train() -> None:
    check(MERGE.format(made="[]", said="  # GS601", towers="towers", given="towers"))


def test_layers_that_somebody_registers_may_be_kept_in_a_list_too() -> None:
    check(MERGE.format(made="nn.ModuleList()", said="", towers="towers", given="towers"))
    source = MERGE.format(made="[]", said="", towers="towers", given="towers")
    check(source.replace("self.merge =", "self.towers = nn.ModuleList(towers)\n        self.merge ="))


LOOKUP = """
words = nn.Embedding(10, 4, sparse={sparse})
head = nn.Linear(4, 2)
optimizer = torch.optim.{optimizer}(words.parameters(){options})
for step in range(2):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step(){said}
"""
PLAIN = "words(torch.tensor([1, 2])).sum()"


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        *((name, "") for name in sorted(REFUSING)),
        ("SGD", ", lr=0.1, weight_decay=0.1"),
        ("Adagrad", ", weight_decay=0.1"),
    ],
)
def test_torch_refuses_sparse_gradients_where_it_is_reported(optimizer: str, options: str) -> None:
    source = LOOKUP.format(sparse=True, optimizer=optimizer, options=options, loss=PLAIN, said="")
    with pytest.raises(RuntimeError, match="sparse"):
        exec(source, {"torch": torch, "nn": nn})
    check(LOOKUP.format(sparse=True, optimizer=optimizer, options=options, loss=PLAIN, said="  # GS518"))


@pytest.mark.parametrize(
    ("sparse", "optimizer", "options", "loss"),
    [
        (True, "SparseAdam", "", PLAIN),
        (True, "SGD", ", lr=0.1, momentum=0.9", PLAIN),
        (True, "Adagrad", "", PLAIN),
        (False, "Adam", "", PLAIN),
        (True, "Adam", "", "(words(torch.tensor([1, 2])) @ words.weight.t()).sum()"),
    ],
)
def test_torch_takes_the_gradients_where_nothing_is_reported(
    sparse: bool, optimizer: str, options: str, loss: str
) -> None:
    source = LOOKUP.format(sparse=sparse, optimizer=optimizer, options=options, loss=loss, said="")
    exec(source, {"torch": torch, "nn": nn})
    check(source)


def test_sparse_adam_takes_no_dense_gradient() -> None:
    source = LOOKUP.format(sparse=False, optimizer="SparseAdam", options="", loss=PLAIN, said="{said}")
    with pytest.raises(RuntimeError, match="dense"):
        exec(source.format(said=""), {"torch": torch, "nn": nn})
    check(source.format(said="  # GS518"))


def test_a_parameter_that_is_only_indexed_is_used() -> None:
    check(
        GROUPS.format(more="\n    if isinstance(module, Fuse):\n        weights.append(module.mix)", said="")
    )


INNER = """
class Score(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sum()

    @staticmethod
    def backward(ctx, grad):
        x, w = (one.detach().requires_grad_() for one in ctx.saved_tensors)
        {context}
        {made}
        return torch.autograd.grad(out, (x, w), grad{options}){said}

x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
Score.apply(x, w).backward({create}){raised}
"""
MADE = "out = (x * w).sum()"


def test_a_backward_cannot_differentiate_what_it_computes() -> None:
    source = INNER.format(context="pass", made=MADE, options="", said="{said}", create="", raised="")
    with pytest.raises(RuntimeError, match="does not require grad"):
        exec(source.format(said=""), {"torch": torch, "nn": nn})
    check(source.format(said="  # GS204"))


def test_a_flag_and_leniency_only_hide_that_nothing_was_recorded() -> None:
    made = f"{MADE}; out.requires_grad_()"
    source = INNER.format(
        context="pass", made=made, options=", allow_unused=True", said="{said}", create="", raised=""
    )
    known: dict[str, torch.Tensor] = {}
    exec("import torch\n" + source.format(said=""), known)
    assert known["w"].grad is None
    check(source.format(said="  # GS204"))


@pytest.mark.parametrize(
    ("made", "create"),
    [
        (f"with torch.enable_grad(): {MADE}", ""),
        ("with torch.set_grad_enabled(True):\n            out = (x * w).sum()", ""),
        (MADE, "create_graph=True"),
    ],
)
def test_a_backward_that_records_may_differentiate(made: str, create: str) -> None:
    source = INNER.format(context="pass", made=made, options="", said="", create=create, raised="")
    exec("import torch\nfrom torch import nn\n" + source, {})
    check(source)
