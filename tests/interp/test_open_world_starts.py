"""How a program is started, what it declares, and which way it goes if nobody gives an option."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

DECLARED = """
from torch.optim.optimizer import Optimizer

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)

class Trainer:
    def train_session(self, model: Net, optimizer: Optimizer, session) -> None:
        for x, y in session.train_set:
            {clear}
            loss = F.l1_loss(model(x), y)
            loss.backward(){claim}
            optimizer.step()
"""


def test_a_declared_optimizer_is_for_the_model_of_the_file_that_is_declared_beside_it() -> None:
    check(DECLARED.format(clear="pass", claim="  # GS501"))
    check(DECLARED.format(clear="optimizer.zero_grad()", claim=""))
    check(DECLARED.format(clear="model.zero_grad()", claim=""))


MEANS = """
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def step(x: torch.Tensor, n):
    opt.zero_grad()
    out = net(x){cut}
    loss = {reduced}.mean()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    "reduced",
    ["out.mean(dim=n)", "out.sum(list(range(1, n)))", "torch.softmax(out, dim=n)", "out.flatten(n)"],
)
def test_a_dimension_that_is_not_known_brings_no_graph(reduced: str) -> None:
    check(MEANS.format(cut=".detach()  # GS203", reduced=reduced))
    check(MEANS.format(cut="", reduced=reduced))


@pytest.mark.parametrize(
    "picked", ["out.gather(1, n.unsqueeze(1))", "out.index_select(0, n.view(-1))", "out.masked_fill(n, 0.0)"]
)
def test_an_index_or_a_mask_that_is_not_known_brings_no_graph(picked: str) -> None:
    check(MEANS.format(cut=".detach()  # GS203", reduced=picked))
    check(MEANS.format(cut="", reduced=picked))


def test_the_other_of_two_that_are_compared_may_bring_one() -> None:
    check(MEANS.format(cut=".detach()", reduced="torch.max(out, n)"))
    check(MEANS.format(cut=".detach()", reduced="(out + n)"))


STARTED = """
from lightning import Fabric
{library}

def setup(devices: int = 1):
    fabric = Fabric(devices=devices)
    train(fabric, nn.Linear(3, 3))

def train(fabric, model):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        opt.zero_grad()
        loss = model(torch.randn(3, 3)).sum(){cut}
        fabric.backward(loss)
        opt.step()

if __name__ == "__main__":
    {start}
"""


@pytest.mark.parametrize(
    ("library", "start"),
    [
        ("from jsonargparse import CLI", "CLI(setup)"),
        ("import fire", "fire.Fire(setup)"),
        ("import typer", "typer.run(setup)"),
    ],
)
def test_a_function_that_a_library_is_given_is_started(library: str, start: str) -> None:
    check(STARTED.format(library=library, start=start, cut=".detach()  # GS203"))
    check(STARTED.format(library=library, start=start, cut=""))


KERNEL = """
import kernels

class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels):
        losses, lse = kernels.forward(logits, labels)
        losses.masked_fill_(labels == -100, 0)
        ctx.save_for_backward(logits, lse, labels)
        return losses

    @staticmethod
    def backward(ctx, grad):
        logits, lse, labels = ctx.saved_tensors
        return kernels.backward(grad, logits, lse, labels), None

def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x){cut}
        loss = Loss.apply(out, y).mean()
        {backward}
        optimizer.step()
"""


def test_what_a_kernel_returns_from_a_function_is_a_tensor_of_its_graph() -> None:
    check(KERNEL.format(cut="", backward="loss.backward()"))
    check(KERNEL.format(cut=".detach()  # GS203", backward="loss.backward()"))
    check(KERNEL.format(cut="", backward="(loss.item() / 2).backward()  # GS202"))


OPTION = """
from argparse import ArgumentParser

def main():
    parser = ArgumentParser()
    parser.add_argument("--fp16", {fp16})
    parser.add_argument("--every", type=int, default=8)
    args = parser.parse_args()
    model = nn.Linear(3, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.fp16:
        from apex import amp
        model, opt = amp.initialize(model, opt)
    for step, x in enumerate(torch.utils.data.DataLoader(torch.randn(64, 3))):
        loss = model(x).sum()
        if args.fp16:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward(){claim}
        if step % args.every == 0:
            opt.step()
            {clear}

main()
"""


@pytest.mark.parametrize("fp16", ['action="store_true"', 'type=str, default=""', "default=None", "default=0"])
def test_the_first_path_is_that_of_a_program_that_is_started_without_options(fp16: str) -> None:
    check(OPTION.format(fp16=fp16, clear="pass", claim="  # GS501"))
    check(OPTION.format(fp16=fp16, clear="opt.zero_grad()", claim=""))


COMPARED = """
import argparse
import elsewhere

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="plain")
args = parser.parse_args()
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
if args.mode {asked}:
    elsewhere.train(net, opt)
else:
    for x in torch.utils.data.DataLoader(torch.randn(64, 3)):
        {clear}
        net(x).sum().backward(){claim}
        opt.step()
"""


@pytest.mark.parametrize("asked", ['== "fancy"', '!= "plain"', 'in ("fancy", "other")', "is None"])
def test_a_question_to_an_option_is_answered_as_if_nobody_gave_it(asked: str) -> None:
    check(COMPARED.format(asked=asked, clear="pass", claim="  # GS501"))
    check(COMPARED.format(asked=asked, clear="opt.zero_grad()", claim=""))


TERMS = """
def step(model, optimizer, data, weight):
    first, second, *_ = model(data)
    loss = (first * weight + second{cut} * 2) / 8
    optimizer.zero_grad()
    {backward}
    optimizer.step()
"""


def test_a_term_of_unknown_shape_is_a_number_where_the_sum_is_differentiated_as_one() -> None:
    check(TERMS.format(cut=".detach()", backward="loss.backward()").replace("* 2) / 8", "* 2) / 8  # GS203"))
    check(TERMS.format(cut="", backward="loss.backward()"))
    check(TERMS.format(cut=".detach()", backward="loss.mean().backward()"))
    check(TERMS.format(cut=".detach()", backward="loss.backward(torch.ones_like(loss))"))


def test_a_value_that_is_taken_out_of_itself_is_no_lost_term() -> None:
    check("""
    def step(model, optimizer, data):
        out = model(data)
        loss = out + out.detach() * 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """)


FORGOTTEN = """
def train(model, loader, settings):
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        {backward}
        optimizer.step(){claim}
"""


def test_a_step_on_an_unknown_module_without_a_backward() -> None:
    check(FORGOTTEN.format(backward="pass", claim="  # GS503"))
    check(FORGOTTEN.format(backward="loss.backward()", claim=""))
    check(FORGOTTEN.format(backward="settings.engine.backward(loss)", claim=""))


STOPPED = """
def train(model, optimizer, loader, settings):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(){claim}
        {step}
"""


def test_that_nothing_steps_is_told_by_the_text() -> None:
    check(STOPPED.format(claim="  # info GS512", step="pass"))
    check(STOPPED.format(claim="  # info GS512", step="settings.engine.backward(loss.detach())"))
    check(STOPPED.format(claim="", step="settings.engine.step(optimizer)"))
    check(STOPPED.format(claim="", step="optimizer.step()"))
