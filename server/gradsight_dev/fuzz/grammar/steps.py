"""Training written as functions and classes: train_step, evaluate, modules with a carried state, gradient penalties."""

from __future__ import annotations

from contextlib import nullcontext

from gradsight_dev.fuzz.grammar.draft import Draft
from gradsight_dev.fuzz.grammar.training import DISTANCES, build_model, build_optimizer, perturb

CELLS = (
    "torch.tanh(self.fc(x) + self.state)",
    "self.fc(x + self.state).relu()",
    "self.fc(x) * 0.5 + self.state",
    "torch.sigmoid(self.fc(x) * self.state)",
)


def train_by_functions(draft: Draft) -> None:
    """`def train_step(model, optimizer, batch):`, called from a loop."""
    model = build_model(draft, "model")
    returns = draft.weighted((("loss.item()", 4.0), ("loss", 2.0), ("loss.detach()", 1.0), ("pred", 1.0)))
    with draft.definition("def train_step(model, optimizer, batch, target):"):
        lines = ["optimizer.zero_grad()"]
        for line in lines:
            draft.say(line)
        draft.say("pred = model(batch)")
        perturb(draft, "pred")
        draft.say(f"loss = {draft.pick(DISTANCES).format('pred', 'target')}")
        draft.say("loss.backward()")
        draft.say("optimizer.step()")
        draft.say(f"return {returns}")
    evaluates = draft.chance(0.4)
    if evaluates:
        decorators = [draft.pick(("@torch.no_grad()", "@torch.inference_mode()"))]
        with draft.definition("def evaluate(model, batch, target):", decorators=decorators):
            draft.say("pred = model(batch)")
            draft.say(draft.pick(("pred *= 2", "pred = pred.sigmoid()", "pred.clamp_(-1, 1)")))
            draft.say("return (pred - target).abs().mean()")
    draft.say(f"optimizer = {build_optimizer(draft, f'{model}.parameters()')}")
    draft.say("history = []")
    with draft.block(f"for step in range({draft.rng.randint(2, 3)}):", in_loop=True):
        draft.say(f"batch = torch.randn({draft.rows}, {draft.width})")
        draft.say(f"target = torch.randn({draft.rows}, {draft.width})")
        draft.say(f"history.append(train_step({model}, optimizer, batch, target))")
        if evaluates:
            draft.say(f"score = evaluate({model}, batch, target)")
    if returns in ("loss", "pred") and draft.dares():
        draft.say(
            draft.pick(
                (
                    "sum(history).sum().backward()",
                    "history[-1].sum().backward()",
                    "history[0].mean().backward()",
                )
            )
        )
    elif evaluates and draft.dares():
        draft.say("score.backward()")


def stateful_module(draft: Draft) -> None:
    """A module that keeps its state from call to call."""
    width, rows = draft.width, draft.rows
    cls = draft.fresh(("Recurrent", "Stateful", "Memory"))
    keeps = draft.weighted((("h", 3.0), ("h.detach()", 4.0), ("h.clone()", 1.0), ("h.data", 0.7)))
    registered = draft.chance(0.3)
    with draft.definition(f"class {cls}(nn.Module):"):
        draft.say("def __init__(self):")
        draft.say("    super().__init__()")
        draft.say(f"    self.fc = nn.Linear({width}, {width})")
        if registered:
            draft.say(f'    self.register_buffer("state", torch.zeros({rows}, {width}))')
        else:
            draft.say(f"    self.state = torch.zeros({rows}, {width})")
        draft.say("")
        with draft.block("def forward(self, x):"):
            draft.say(f"h = {draft.pick(CELLS)}")
            perturb(draft, "h")
            update = draft.pick(
                (
                    f"self.state = {keeps}",
                    f"self.state = {keeps}",
                    "self.state.copy_(h.detach())",
                    "self.state.mul_(0.9).add_(h.detach(), alpha=0.1)",
                    "self.state[0] = h[0]",
                )
            )
            draft.say(update)
            draft.say("return h")
        if draft.chance(0.3):
            draft.say("")
            draft.say("def reset(self):")
            draft.say(
                f"    self.state = {draft.pick(('torch.zeros_like(self.state)', 'self.state.detach()'))}"
            )
            reset = True
        else:
            reset = False
    draft.say(f"net = {cls}()")
    draft.say(f"opt = {build_optimizer(draft, 'net.parameters()')}")
    inner = draft.chance(0.4)
    with draft.block(f"for step in range({draft.rng.randint(2, 3)}):", in_loop=True):
        if reset and draft.chance(0.8):
            draft.say("net.reset()")
        draft.say(f"x = torch.randn({rows}, {width})")
        if inner:
            draft.say("loss = 0")
            with draft.block("for t in range(2):"):
                draft.say("loss = loss + net(x).pow(2).mean()")
        else:
            draft.say("loss = net(x).pow(2).mean()")
        draft.say("opt.zero_grad()")
        draft.say(f"loss.backward({'retain_graph=True' if draft.chance(0.2) else ''})")
        if draft.chance(0.8):
            draft.say("opt.step()")


def gradient_penalty(draft: Draft) -> None:
    """A loss on the gradient itself: create_graph, or its absence."""
    model = build_model(draft, "critic")
    draft.say(f"opt = {build_optimizer(draft, f'{model}.parameters()')}")
    create = draft.weighted(
        (
            ("create_graph=True", 5.0),
            ("create_graph=True, retain_graph=True", 1.0),
            ("retain_graph=True", 1.5),
            ("", 1.0),
        )
    )
    with draft.block(f"for step in range({draft.rng.randint(1, 2)}):", in_loop=True):
        draft.say(f"x = torch.randn({draft.rows}, {draft.width}, requires_grad=True)")
        if draft.chance(0.2):
            draft.say(draft.pick(("x = x * 2", "x = x.detach().requires_grad_()", "x = x.clone()")))
        draft.say(f"out = {model}(x)")
        perturb(draft, "out")
        draft.say(
            f"(slope,) = torch.autograd.grad({', '.join(part for part in ('out.sum()', 'x', create) if part)})"
        )
        draft.say(
            f"penalty = {draft.pick(('(slope.norm() - 1) ** 2', 'slope.pow(2).sum()', 'slope.norm(dim=-1).mean()'))}"
        )
        total = draft.pick(("penalty", "out.mean() + penalty", "out.pow(2).sum() + 10 * penalty"))
        draft.say(f"loss = {total}")
        draft.say("opt.zero_grad()")
        draft.say("loss.backward()")
        draft.say("opt.step()")


def manual_parameters(draft: Draft) -> None:
    """Parameters of a model updated in a loop over `parameters()`."""
    model = build_model(draft, "model")
    draft.say(f"inputs = torch.randn({draft.rows}, {draft.width})")
    if draft.chance(0.3):
        draft.say(
            f"average = [p.{draft.pick(('detach().clone()', 'clone()', 'data', 'detach()'))} for p in {model}.parameters()]"
        )
        averaged = True
    else:
        averaged = False
    style = draft.weighted(
        (("no_grad", 4.0), ("data", 2.0), ("bare", 1.0 if draft.daring > 0.4 else 0.2), ("between", 1.5))
    )
    with draft.block(f"for step in range({draft.rng.randint(2, 3)}):", in_loop=True):
        draft.say(f"out = {model}(inputs)")
        draft.say("first = out.pow(2).mean()")
        retain = style == "between"
        if retain:
            draft.say(f"second = {draft.pick(('out.abs().sum()', 'out.sum()', f'{model}(inputs).sum()'))}")
        draft.say(f"first.backward({'retain_graph=True' if retain and draft.chance(0.8) else ''})")
        _update_all(draft, model, "no_grad" if retain else style)
        if retain:
            draft.say("second.backward()")
        if averaged:
            with draft.block("with torch.no_grad():"):
                draft.say(f"for old, new in zip(average, {model}.parameters()):")
                draft.say("    old.mul_(0.9).add_(new, alpha=0.1)")
        draft.say(f"{model}.zero_grad()")


def _update_all(draft: Draft, model: str, style: str) -> None:
    bare = ("p -= 0.1 * p.grad", "p.add_(p.grad, alpha=-0.1)", "p.copy_(p - 0.1 * p.grad)")
    hidden = ("p.data -= 0.1 * p.grad", "p.data.add_(p.grad, alpha=-0.1)", "p.data = p.data - 0.1 * p.grad")
    quiet = draft.block("with torch.no_grad():") if style == "no_grad" else nullcontext()
    with quiet, draft.block(f"for p in {model}.parameters():"), draft.block("if p.grad is not None:"):
        draft.say(draft.pick(hidden if style == "data" else bare))
