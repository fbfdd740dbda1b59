"""Modules: registration, typos, layers made too late, activations applied twice."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.checking import check


def test_layers_in_a_list_are_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(4, 4) for _ in range(3)]  # GS601
                self.out = nn.Linear(4, 1)
            def forward(self, x):
                for l in self.layers:
                    x = torch.relu(l(x))
                return self.out(x)
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
    """)


def test_heads_in_a_dict_are_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self, tasks):
                super().__init__()
                self.body = nn.Linear(4, 4)
                self.heads = {t: nn.Linear(4, 1) for t in tasks}  # GS601
            def forward(self, x, task):
                return self.heads[task](self.body(x))
        net = Net(["a", "b"])
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(8, 4), "a").mean().backward()
        opt.step()
    """)


def test_layers_appended_to_a_list_are_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.blocks = []  # GS601
                for i in range(n):
                    self.blocks.append(nn.Linear(4, 4))
            def forward(self, x):
                for b in self.blocks:
                    x = b(x)
                return x
    """)


def test_appended_heads_are_reported_where_the_list_is_made() -> None:
    check("""
        class MultiHead(nn.Module):
            def __init__(self, d, h):
                super().__init__()
                self.heads = []  # GS601
                for _ in range(h):
                    self.heads.append(nn.Linear(d, d // h))
                self.out = nn.Linear(d, d)
            def forward(self, x):
                return self.out(torch.cat([h(x) for h in self.heads], -1))
        net = MultiHead(8, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        loss = net(torch.randn(4, 8)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """)


def test_a_tensor_that_requires_grad_is_reported() -> None:
    check("""
        class Scale(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                self.alpha = torch.ones(1, requires_grad=True)  # GS601
            def forward(self, x):
                return self.alpha * self.fc(x)
        m = Scale()
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m(torch.randn(2, 3)).mean().backward()
        opt.step()
    """)


def test_layers_in_a_tuple_are_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.pair = (nn.Linear(4, 4), nn.Linear(4, 1))  # GS601
                self.scale = nn.Parameter(torch.ones(1))
            def forward(self, x):
                a, b = self.pair
                return self.scale * b(torch.relu(a(x)))
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).sum().backward()
        opt.step()
    """)


def test_parameters_in_a_list_are_reported() -> None:
    check("""
        class Poly(nn.Module):
            def __init__(self, degree):
                super().__init__()
                self.coef = [nn.Parameter(torch.randn(1)) for _ in range(degree)]  # GS601
                self.bias = nn.Parameter(torch.zeros(1))
            def forward(self, x):
                return self.bias + sum(c * x ** (i + 1) for i, c in enumerate(self.coef))
        p = Poly(3)
        opt = torch.optim.SGD(p.parameters(), lr=0.1)
        loss = p(torch.randn(10)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """)


def test_lists_that_end_in_containers_are_left_alone() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                layers = []
                for i in range(3):
                    layers += [nn.Linear(4, 4), nn.ReLU()]
                self.body = nn.Sequential(*layers)
                self.mods = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
                self.sizes = [4, 4]
                self.hooks = []
            def forward(self, x):
                for m in self.mods:
                    x = m(x)
                return self.body(x)
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_a_list_of_registered_layers_is_left_alone() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 4)
                self.b = nn.Linear(4, 4)
                self.order = [self.a, self.b]
            def forward(self, x):
                for m in self.order:
                    x = m(x)
                return x
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_add_module_registers() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = []
                for i in range(3):
                    layer = nn.Linear(4, 4)
                    self.add_module(f"layer{i}", layer)
                    self.layers.append(layer)
            def forward(self, x):
                for m in self.layers:
                    x = m(x)
                return x
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_setattr_registers() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.names = []
                for i in range(3):
                    setattr(self, f"fc{i}", nn.Linear(4, 4))
                    self.names.append(f"fc{i}")
            def forward(self, x):
                for n in self.names:
                    x = getattr(self, n)(x)
                return x
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(2, 4)).sum().backward()
        opt.step()
    """)


def test_parameters_given_to_the_optimizer_by_hand_are_left_alone() -> None:
    check("""
        class Ensemble(nn.Module):
            def __init__(self):
                super().__init__()
                self.members = [nn.Linear(4, 1) for _ in range(3)]
            def forward(self, x):
                return torch.stack([m(x) for m in self.members]).mean(0)
        e = Ensemble()
        opt = torch.optim.SGD([p for m in e.members for p in m.parameters()], lr=0.1)
        e(torch.randn(2, 4)).mean().backward()
        opt.step()
    """)


def test_a_teacher_hidden_in_a_list_is_left_alone() -> None:
    check("""
        class Distiller(nn.Module):
            def __init__(self, teacher):
                super().__init__()
                self.student = nn.Linear(4, 2)
                self.teacher = [teacher]
            def forward(self, x):
                with torch.no_grad():
                    t = self.teacher[0](x)
                return F.mse_loss(self.student(x), t)
        d = Distiller(nn.Linear(4, 2))
        opt = torch.optim.SGD(d.parameters(), lr=0.1)
        d(torch.randn(2, 4)).backward()
        opt.step()
    """)


def test_a_misspelt_requires_grad_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        for p in net.parameters():
            p.require_grad = False  # GS602
    """)


def test_a_learning_rate_set_on_the_optimizer_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        opt.lr = 0.01  # GS602
    """)


def test_attributes_of_ones_own_are_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for g in opt.param_groups:
            g["lr"] = 0.01
        net.custom_flag = True
        net.weight.tag = "w"
    """)


def test_a_layer_before_super_init_is_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                self.fc = nn.Linear(3, 1)  # GS603
                super().__init__()
            def forward(self, x):
                return self.fc(x)
    """)


def test_plain_values_before_super_init_are_left_alone() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self, n):
                self.n = n
                super().__init__()
                self.fc = nn.Linear(n, 1)
            def forward(self, x):
                return self.fc(x)
        Net(3)
    """)


def test_a_layer_made_in_forward_is_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
            def forward(self, x):
                proj = nn.Linear(4, 2)  # GS604
                return proj(self.fc(x))
    """)


def test_a_layer_kept_but_made_in_every_forward_is_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
            def forward(self, x):
                self.proj = nn.Linear(4, 2)  # GS604
                return self.proj(self.fc(x))
    """)


def test_layers_without_parameters_may_be_made_in_forward() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
            def forward(self, x):
                x = nn.ReLU()(self.fc(x))
                x = nn.Dropout(0.1)(x)
                return nn.LayerNorm(4, elementwise_affine=False)(x)
    """)


def test_a_layer_made_once_before_the_optimizer_is_left_alone() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.head = None
            def forward(self, x):
                h = self.fc(x)
                if self.head is None:
                    self.head = nn.Linear(h.shape[1], 2)
                return self.head(h)
        net = Net()
        net(torch.randn(2, 4))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            net(torch.randn(2, 4)).mean().backward()
            opt.step()
    """)


def test_softmax_before_cross_entropy_is_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 3)
            def forward(self, x):
                return F.softmax(self.fc(x), dim=1)
        net = Net()
        loss = nn.CrossEntropyLoss()(net(torch.randn(2, 4)), torch.tensor([0, 1]))  # GS605
        loss.backward()
    """)


def test_a_softmax_layer_before_cross_entropy_is_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.act = nn.Linear(4, 3), nn.Softmax(dim=-1)
                self.crit = nn.CrossEntropyLoss()
            def forward(self, x):
                return self.act(self.fc(x))
            def loss(self, x, y):
                return self.crit(self(x), y)  # GS605
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            net.loss(torch.randn(4, 4), torch.randint(0, 3, (4,))).backward()
            opt.step()
    """)


def test_sigmoid_before_logits_loss_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
        loss = F.binary_cross_entropy_with_logits(net(torch.randn(2, 4)), torch.ones(2, 1))  # GS605
        loss.backward()
    """)


def test_losses_of_probabilities_are_left_alone() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(1))
        loss = F.nll_loss(net(torch.randn(2, 4)), torch.tensor([0, 1]))
        loss.backward()
        p = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
        F.binary_cross_entropy(p(torch.randn(2, 4)), torch.ones(2, 1)).backward()
        soft = F.softmax(torch.randn(2, 3), dim=1)
        F.cross_entropy(nn.Linear(4, 3)(torch.randn(2, 4)), soft).backward()
    """)


LAYER_AFTER_SIGMOID = """import torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.ReLU(inplace=True))
net(torch.ones(1, 2)).sum().backward()
"""


def test_a_layer_that_overwrites_the_layer_before_it_is_told_in_their_names() -> None:
    findings = analyze(Source("program.py", LAYER_AFTER_SIGMOID)).findings
    message = "`nn.ReLU(inplace=True)` overwrites the output of `Sigmoid`, which `backward()` needs: drop `inplace=True`"
    assert [(finding.code, finding.message) for finding in findings] == [("GS101", message)]


def test_a_layer_that_overwrites_nothing_of_use_is_called_safe_where_it_is_called() -> None:
    findings = analyze(Source("program.py", LAYER_AFTER_SIGMOID.replace("nn.Sigmoid(), ", ""))).findings
    assert [(finding.code, finding.span.line) for finding in findings] == [("GS190", 4)]


@pytest.mark.parametrize(
    "name", ["requires_gard", "requires_grd", "reqires_grad", "requires_gradd", "required_grads"]
)
def test_a_name_near_requires_grad_is_a_typo(name: str) -> None:
    check(f"""
        net = nn.Linear(2, 2)
        for p in net.parameters():
            p.{name} = False  # GS602
    """)


@pytest.mark.parametrize("name", ["requires_grad", "required", "gradient_scale", "requires_sync"])
def test_a_name_of_its_own_is_no_typo(name: str) -> None:
    check(f"""
        net = nn.Linear(2, 2)
        net.weight.{name} = True
    """)


def test_modules_registered_one_by_one_may_be_kept_in_pairs() -> None:
    check("""
        class Cell(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.line = nn.Linear(size, size)
            def forward(self, x):
                return self.line(x)
        class Net(nn.Module):
            def __init__(self, size, depth):
                super().__init__()
                pairs = []
                for index in range(depth):
                    ahead, back = Cell(size), Cell(size)
                    self.add_module("ahead_{}".format(index), ahead)
                    self.add_module("back_{}".format(index), back)
                    pairs.append([ahead, back])
                self.pairs = pairs
            def forward(self, x):
                for index in range(len(self.pairs)):
                    x = getattr(self, "ahead_{}".format(index))(x).detach()
                return x
    """)


def test_a_method_that_is_overwritten_is_not_called() -> None:
    check("""
        net = nn.Linear(2, 2)
        net.weight.requires_grad_ = False  # GS602
    """)
