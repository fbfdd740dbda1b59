"""Programs whose faults show where all flags are off at once, or beside code that only looks at a model."""

from __future__ import annotations

import pytest

from gradsight.interp.paths.roles import may_clear
from tests.interp.checking import check

SET_UP = """
import argparse
from apex import amp
from tools import log_validation, save_state, shake

parser = argparse.ArgumentParser()
args = parser.parse_args()
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
"""


def test_what_is_never_cleared_without_mixed_precision_is_reported() -> None:
    check(
        SET_UP
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if args.half:
    model, optimizer = amp.initialize(model, optimizer)
for batch in torch.ones(9, 8, 4):
    loss = model(batch).square().mean()
    if args.half:
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
    else:
        loss.backward()  # GS501
    if args.verbose:
        print(loss.item())
    optimizer.step()
"""
    )


def test_a_flag_that_may_clear_is_allowed_for() -> None:
    check(
        SET_UP
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if args.half:
    model, optimizer = amp.initialize(model, optimizer)
for batch in torch.ones(9, 8, 4):
    loss = model(batch).square().mean()
    if args.half:
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
    else:
        loss.backward()
    if args.verbose:
        print(loss.item())
    optimizer.step()
    if args.fresh:
        amp.clear_gradients(model)
    if args.other:
        optimizer.zero_grad()
"""
    )


def test_a_part_in_no_optimizer_is_reported_beside_a_checkpoint_that_may_be_loaded() -> None:
    check(
        SET_UP
        + """
if args.resume:
    model.load_state_dict(torch.load(args.resume))
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)  # GS512
for batch in torch.ones(9, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    if args.verbose:
        print(loss.item())
"""
    )


def test_a_flag_that_may_freeze_is_allowed_for() -> None:
    check(
        SET_UP
        + """
if args.resume:
    model.load_state_dict(torch.load(args.resume))
if args.linear:
    for parameter in model[0].parameters():
        parameter.requires_grad = False
if args.whole:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
else:
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
for batch in torch.ones(9, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    if args.verbose:
        print(loss.item())
"""
    )


def test_code_that_logs_and_saves_leaves_gradients() -> None:
    check(
        SET_UP
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.ones(9, 8, 4):
    loss = model(batch).square().mean()
    loss.backward()  # GS501
    optimizer.step()
    log_validation(model, loss.item())
    save_state(model, optimizer)
"""
    )


def test_code_of_another_name_may_clear() -> None:
    check(
        SET_UP
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.ones(9, 8, 4):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    shake(model)
"""
    )


def test_weights_of_a_recurrent_layer_are_laid_out_anew_without_being_changed() -> None:
    check(
        """
cell = nn.LSTM(4, 4)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
for batch in torch.ones(9, 8, 2, 4):
    cell.flatten_parameters()
    out, _ = cell(batch)
    out.square().mean().backward()  # GS501
    optimizer.step()
"""
    )


def test_a_step_ahead_of_its_backward_is_reported_where_it_stands() -> None:
    check(
        SET_UP
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.ones(9, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    optimizer.step()  # GS502
    loss.backward()
"""
    )


def test_a_whole_that_was_loaded_is_trained_as_a_whole() -> None:
    check(
        SET_UP
        + """
model.load_state_dict(torch.load("last.pt"))
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)  # GS512
for batch in torch.ones(9, 8, 4):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
"""
    )


def test_a_fresh_part_on_top_of_loaded_ones_is_trained_alone() -> None:
    check(
        SET_UP
        + """
model.load_state_dict(torch.load("last.pt"))
model[2] = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
for batch in torch.ones(9, 8, 4):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
"""
    )


STOPPED = """
import math, os, sys
def train(model, criterion, loader, optimizer, args{}):
    for x, y in loader:
        loss = criterion(model(x), y)
        if not math.isfinite(loss.item()):
            print("not a number")
            {}
        if {}:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            {}
            loss.backward(){}
            optimizer.step()
"""


@pytest.mark.parametrize("leaving", ["sys.exit(1)", "exit()", "os._exit(2)", "raise ValueError"])
@pytest.mark.parametrize(("option", "asked"), [("", "args.amp"), (", amp=False", "amp")])
def test_an_arm_that_clears_for_itself_clears_for_no_other(leaving: str, option: str, asked: str) -> None:
    check(STOPPED.format(option, leaving, asked, "pass", "  # GS501"))
    check(STOPPED.format(option, leaving, asked, "optimizer.zero_grad()", ""))


def test_an_option_to_clear_is_left_to_the_caller() -> None:
    check("""
def train(model, criterion, loader, optimizer, clear=True):
    for x, y in loader:
        loss = criterion(model(x), y)
        if clear:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""")


STEPS = """
class Trainer:
    def __init__(self, spec, config):
        self.spec, self.config = spec, config
    def fit(self, rank):
        if self.config.distributed:
            torch.cuda.set_device(rank)
        model = self.spec.make_model()
        optimizer = self.spec.make_optimizer(model.parameters())
        if self.config.half:
            model, optimizer = self.spec.shrink(model, optimizer)
        if self.config.distributed:
            model = nn.parallel.DistributedDataParallel(model)
        if self.config.saved:
            optimizer.load_state_dict(torch.load(self.config.saved))
        for step in range(self.config.steps):
            self.train_step(model, optimizer, self.spec.batch())
            if step % self.config.often == 0:
                print(self.{name}(model))
            if rank == 0 and step % self.config.seldom == 0:
                torch.save(model.state_dict(), self.config.place)
    def train_step(self, model, optimizer, batch):
        loss = self.spec.loss(model, batch)
        if self.config.half:
            with self.spec.scaled(loss, optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward(){code}
        optimizer.step()
    def {name}(self, model):
        return self.spec.look_at(model)
"""


@pytest.mark.parametrize("name", ["eval_step", "_validation_step", "log_step"])
def test_a_step_of_watching_clears_nothing(name: str) -> None:
    assert not may_clear(name)
    check(STEPS.format(name=name, code="  # GS501"))


@pytest.mark.parametrize("name", ["finish_step", "eval_and_zero", "train_and_log_step", "step"])
def test_a_step_of_another_name_may_clear(name: str) -> None:
    assert may_clear(name)
    check(STEPS.format(name=name, code=""))
