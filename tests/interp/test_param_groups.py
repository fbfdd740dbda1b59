"""Optimizers whose parameter groups are changed while they are used: a step moves what is in the groups then."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import run, safe

GROWING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return self.fc(x)
    def grow(self):
        new = nn.Linear(3, 2)
        with torch.no_grad():
            new.weight.copy_(self.fc.weight)
        self.fc = new{mark}
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
for task in range(3):
    for _ in range(2):
        opt.zero_grad()
        before = net.fc.weight.detach().clone()
        net(torch.randn(4, 3)).pow(2).mean().backward()
        opt.step()
        {after}
    if task < 2:
        net.grow()
        {regroup}
"""
MOVED = "assert not torch.equal(before, net.fc.weight)"
STOOD = "assert task == 0 or torch.equal(before, net.fc.weight)"
GROUP = '{"params": net.parameters(), "lr": 0.1}'
REGROUPINGS = [
    f"opt.param_groups.clear(); opt.add_param_group({GROUP})",
    f"del opt.param_groups[:]; opt.add_param_group({GROUP})",
    f"opt.param_groups.pop(); opt.state.clear(); opt.add_param_group({GROUP})",
    f"opt.param_groups = []; opt.add_param_group({GROUP})",
    "opt.param_groups[0]['params'] = list(net.parameters())",
    "opt.param_groups[0]['params'][:] = list(net.parameters())",
    "for group in opt.param_groups: group['params'] = [*net.parameters()]",
    f"opt.add_param_group({GROUP})",
]


@pytest.mark.parametrize("regroup", REGROUPINGS)
def test_new_parameters_that_are_put_into_the_groups_are_moved(regroup: str) -> None:
    safe(GROWING.format(mark="", after=MOVED, regroup=regroup))


@pytest.mark.parametrize(
    "regroup", ["pass", "opt.state.clear()", "groups = list(opt.param_groups); groups.clear()"]
)
def test_new_parameters_outside_of_the_groups_are_told(regroup: str) -> None:
    check(GROWING.format(mark="  # GS504", after=STOOD, regroup=regroup))
    run(GROWING.format(mark="", after=STOOD, regroup=regroup))


@pytest.mark.parametrize("regroup", REGROUPINGS)
def test_parameters_that_come_after_the_last_step_take_nothing_from_it(regroup: str) -> None:
    program = """
        net = nn.ModuleList([nn.Linear(3, 2)])
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for task in range(3):
            opt.zero_grad()
            net[0](torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
            net[0] = nn.Linear(3, 2)
            REGROUP
    """
    safe(program.replace("REGROUP", regroup))


FROZEN = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD([{{"params": net.parameters(), "weight_decay": 0.5}}], 0.1)
{change}
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(4, 3)).pow(2).mean().backward()
    {zero}
    opt.step()
"""


def test_an_option_that_is_set_in_the_group_holds() -> None:
    zero = "net.weight.grad.zero_()"
    check(FROZEN.format(change="pass", zero=f"{zero}  # GS509"))
    text = FROZEN.format(
        change="opt.param_groups[0]['weight_decay'] = 0.0; start = net.weight.detach().clone()", zero=zero
    )
    safe(text + "assert torch.equal(start, net.weight)\n")


GROUPED_IN_A_LOOP = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)) for _ in range(20)])
        self.head = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4))
    def forward(self, x):
        return self.head(self.base(x))
def grouped(named):
    decayed, others = [], []
    for name, parameter in named:
        if parameter.ndim == 1:
            others.append(parameter)
        else:
            decayed.append(parameter)
    return [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
net = Net()
optimizer = torch.optim.SGD(grouped(net.named_parameters()), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    net(torch.ones(2, 4)).mean().backward()
    optimizer.step()
"""


def test_a_loop_that_is_not_executed_to_its_end_groups_all_parameters() -> None:
    check(GROUPED_IN_A_LOOP)
    check(
        GROUPED_IN_A_LOOP.replace("range(20)", "range(1)")
        .replace("net.named_parameters()", "net.base.named_parameters()")
        .replace("lr=0.1)", "lr=0.1)  # GS512")
    )


BLOCKS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU()) for _ in range(6)])
        self.last = nn.Linear(4, 1)

    def forward(self, x):
        return self.last(self.layers(x))

def split(model):
    decay, rest = KIND
    SPLIT
    return decay, rest

model = Net()
decay, rest = split(model)
optimizer = torch.optim.SGD([{"params": decay}, {"params": rest, "weight_decay": 0.0}], lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()
"""
BY_MODULE = """
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            (rest if name == "bias" else decay).append(parameter)
"""
BY_LIST = """
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            rest.extend(module.parameters(recurse=False))
        else:
            for name, parameter in module.named_parameters(recurse=False):
                if name.endswith("bias"):
                    rest.append(parameter)
                else:
                    decay.append(parameter)
"""
BY_NAME = """
    for prefix, module in model.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            whole = "%s.%s" % (prefix, name) if prefix else name
            if name.endswith("bias") or isinstance(module, nn.LayerNorm):
                rest.add(whole)
            else:
                decay.add(whole)
    named = dict(model.named_parameters())
    decay, rest = [named[one] for one in sorted(decay)], [named[one] for one in sorted(list(rest))]
"""


@pytest.mark.parametrize(
    ("kind", "split"), [("[], []", BY_MODULE), ("[], []", BY_LIST), ("set(), set()", BY_NAME)]
)
def test_parameters_that_a_loop_over_all_modules_puts_into_groups_are_trained(kind: str, split: str) -> None:
    check(BLOCKS.replace("KIND", kind).replace("    SPLIT\n", split))


SELECTED = """
class Trainer:
    def __init__(self, args):
        self.model = MODEL
        self.args = args

    def train(self, loader):
        groups, custom = [], set()
        for group in self.args.parameter_groups:
            names = group.pop("params")
            custom.update(names)
            groups.append({"params": [p for n, p in self.model.named_parameters() if n in names]})
        groups.extend([{"params": [p for n, p in self.model.named_parameters() if n not in custom]}])
        optimizer = torch.optim.AdamW(groups, lr=0.1)
        for x in loader:
            optimizer.zero_grad()
            self.model(x).sum().backward()
            optimizer.step()
"""


def test_groups_whose_members_are_selected_by_names_share_none() -> None:
    check(SELECTED.replace("MODEL", "nn.Linear(2, 2)"))
    check(SELECTED.replace("MODEL", "args.model"))
    check("""
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD([{"params": net.parameters()}, {"params": [net.weight]}], lr=0.1)  # GS518
    """)


GRADUALLY = """
def finetune(model, layers, loader):
    params = []
    for layer in layers:
        params += [{"params": layer.parameters(), "lr": 0.1}]
        optimizer = torch.optim.AdamW(params)
        for x in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
"""


def test_group_that_torch_was_given_has_a_list() -> None:
    check(GRADUALLY)
    check("""
    net = nn.Linear(2, 2)
    params = net.parameters()
    one = torch.optim.SGD(params, lr=0.1)
    two = torch.optim.SGD(params, lr=0.1)  # GS510
    """)
