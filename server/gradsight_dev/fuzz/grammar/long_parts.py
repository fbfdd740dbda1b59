"""The parts that programs with long loops are made of."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.draft import Draft
from gradsight_dev.fuzz.grammar.rounds import Rounds, periodic, when

SAVING = ("torch.sigmoid({0})", "torch.tanh({0})", "({0}).exp()", "F.softmax({0}, dim=-1)")
"""Operators that keep their result for backward."""
PLAIN = ("{0} * 2", "{0} + 1", "-({0})", "{0} / 3")
"""Operators whose result may be written."""
WRITES = ("{0}.mul_(0.5)", "{0} += 1", "{0} *= 2", "{0}.clamp_(-1, 1)", "{0}.zero_()", "{0}[0] = 0")


def long_leaf(draft: Draft, name: str = "w") -> str:
    draft.say(f"{name} = torch.{draft.pick(('ones', 'rand', 'randn'))}({draft.width}, requires_grad=True)")
    return name


def long_model(draft: Draft, name: str = "model") -> str:
    width = draft.width
    form = draft.weighted(
        (
            (f"nn.Linear({width}, {width})", 2.0),
            (f"nn.Sequential(nn.Linear({width}, {width}), nn.Tanh(), nn.Linear({width}, {width}))", 2.0),
            (f"nn.Sequential(nn.Linear({width}, {width}), nn.ReLU())", 1.0),
            ("Net()", 1.5),
        )
    )
    if form == "Net()" and not any("class Net" in line for line in draft.head):
        with draft.definition("class Net(nn.Module):"):
            with draft.block("def __init__(self):"):
                draft.say("super().__init__()")
                draft.say(f"self.body = nn.Linear({width}, {width})")
                draft.say(f"self.head = nn.Linear({width}, {width})")
            draft.say("")
            with draft.block("def forward(self, x):"):
                draft.say("return self.head(torch.relu(self.body(x)))")
    draft.say(f"{name} = {form}")
    return name


def write_value(draft: Draft, value: str) -> None:
    """A write to a value that its operator kept, or to one that nobody needs."""
    draft.say(draft.pick(WRITES).format(value))


def scalar_of(draft: Draft, value: str) -> str:
    return draft.pick(("{0}.sum()", "{0}.mean()", "{0}.pow(2).mean()", "{0}.abs().sum()")).format(value)


def log_sometimes(draft: Draft, rounds: Rounds, value: str) -> None:
    """Something harmless every so many rounds."""
    if not draft.chance(0.35):
        return
    with when(draft, periodic(draft, rounds)):
        draft.say(
            draft.pick(
                (
                    f"logged = ({rounds.counter}, {value}.item())",
                    f"logged = float({value})",
                    f"line = f'{{{value}.item():.3f}}'",
                    f"shown = {value}.detach()",
                )
            )
        )
