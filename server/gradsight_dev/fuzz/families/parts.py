"""Parts that every training script has, in the forms that users give them: models, optimizers, data, updates, holders."""

from __future__ import annotations

from dataclasses import dataclass

from gradsight_dev.fuzz.families.marked import indented, joined
from gradsight_dev.fuzz.families.script import Script

SMOOTH = ("Tanh", "GELU", "Sigmoid", "SiLU", "Softplus")


def add_model(script: Script, name: str, inputs: int, outputs: int, *, deep: bool = False) -> None:
    """A model under a name of the state."""
    rng, hidden = script.rng, script.rng.choice((5, 6))
    act = rng.choice(SMOOTH)
    stack = f"nn.Sequential(nn.Linear({inputs}, {hidden}), nn.{act}(), nn.Linear({hidden}, {outputs}))"
    forms = ["stack"] if script.plain else ["stack", "stack", "class", "factory", "list", "given"]
    form = rng.choice(forms if deep else [*forms, "layer"])
    title = name.capitalize()
    if form == "layer":
        made = f"nn.Linear({inputs}, {outputs})"
    elif form == "stack":
        made = stack
    elif form == "factory":
        script.define(
            f"def build_{name}(width):\n    return {stack.replace(str(hidden), 'width')}", f"build_{name}"
        )
        made = f"build_{name}({hidden})"
    elif form == "class":
        body = (
            f"self.first = nn.Linear({inputs}, {hidden})\nself.last = nn.Linear({hidden}, {outputs})",
            f"hidden = F.{rng.choice(('gelu', 'silu', 'softplus'))}(self.first(x))\nreturn self.last(hidden)",
        )
        script.define(module_class(title, *body), title)
        made = f"{title}()"
    elif form == "list":
        body = (
            f"self.layers = nn.ModuleList([nn.Linear({inputs}, {hidden}), nn.Linear({hidden}, {outputs})])",
            "for i, layer in enumerate(self.layers):\n    x = layer(x) if i == 0 else layer(torch.tanh(x))\nreturn x",
        )
        script.define(module_class(title, *body), title)
        made = f"{title}()"
    else:
        body = ("self.body = body\nself.act = nn." + act + "()", "return self.body(self.act(x))")
        script.define(module_class(title, *body, arguments=", body"), title)
        made = f"{title}({stack})"
    script.make(name, f"{name} = {made}")


def module_class(title: str, init: str, forward: str, arguments: str = "", taken: str = "x") -> str:
    """A module written out."""
    return joined(
        f"class {title}(nn.Module):",
        f"    def __init__(self{arguments}):",
        "        super().__init__()",
        indented(init, 2),
        f"    def forward(self, {taken}):",
        indented(forward, 2),
    )


def optimizer_of(script: Script, parameters: str) -> str:
    """An expression for an optimizer over parameters."""
    rng = script.rng
    kind = rng.choice(
        (
            "torch.optim.SGD({}, lr=0.1)",
            "torch.optim.Adam({}, lr=0.01)",
            "torch.optim.AdamW({}, lr=0.01)",
            "torch.optim.SGD({}, lr=0.05, momentum=0.9)",
            "torch.optim.RMSprop({}, lr=0.01)",
        )
    )
    given = rng.choice((parameters, parameters, f"list({parameters})", f'[{{"params": {parameters}}}]'))
    return kind.format(parameters if parameters.startswith("[") else given)


def add_optimizer(script: Script, name: str, parameters: str) -> None:
    """An optimizer under a name of the state."""
    script.make(name, f"{name} = {optimizer_of(script, parameters)}")


def add_batches(script: Script, inputs: int, outputs: int, rows: int = 6) -> None:
    """`x` and `y` in every iteration."""
    rng = script.rng
    form = "drawn" if script.plain else rng.choice(("drawn", "drawn", "list", "loader", "generator"))
    drawn = f"torch.randn({rows}, {inputs}), torch.randn({rows}, {outputs})"
    if form == "drawn":
        script.rounds.append(f"x, y = {drawn}")
    elif form == "list":
        script.make("data", f"data = [({drawn}) for _ in range(3)]")
        script.header = "for x, y in data:"
    elif form == "generator":
        script.define(f"def batches(count):\n    for _ in range(count):\n        yield {drawn}", "batches")
        script.header = "for x, y in batches(3):"
    else:
        script.imports.add("from torch.utils.data import DataLoader, TensorDataset")
        whole = f"TensorDataset(torch.randn({3 * rows}, {inputs}), torch.randn({3 * rows}, {outputs}))"
        script.make("loader", f"loader = DataLoader({whole}, batch_size={rows})")
        script.header = "for x, y in loader:"


def add_update(script: Script, optimizers: str = "opt", loss: str = "loss", form: str = "") -> None:
    """Clear, backward, step; perhaps scaled or clipped, perhaps in a function."""
    script.rounds.append(update_block(script, optimizers, loss, form))


def update_block(script: Script, optimizers: str = "opt", loss: str = "loss", form: str = "") -> str:
    """The block of an update."""
    rng, names = script.rng, optimizers.split(", ")
    form = form or ("plain" if script.plain else rng.choice(("plain", "plain", "none", "clip", "scaled")))
    clear = "\n".join(f"{name}.zero_grad()" for name in names)
    step = "\n".join(f"{name}.step()" for name in names)
    if form == "scaled" and "scaler" not in script.state:
        script.make("scaler", 'scaler = torch.amp.GradScaler("cpu", init_scale=16.0)')
        steps = "\n".join(f"scaler.step({name})" for name in names)
        return joined(clear, f"scaler.scale({loss}).backward()", steps, "scaler.update()")
    if form == "clip" and len(names) == 1 and "net" in script.state:
        return joined(clear, f"{loss}.backward()", "nn.utils.clip_grad_norm_(net.parameters(), 5.0)", step)
    if form == "none":
        return joined(f"{loss}.backward()", step, clear)
    whole = joined(clear, f"{loss}.backward()", step)
    return script.through("update", f"{optimizers}, {loss}", whole) if rng.random() < 0.3 else whole


@dataclass(frozen=True, slots=True)
class Holder:
    """A place outside the name of a value: how it is made, filled and read."""

    made: str
    filled: str
    read: str

    def fill(self, value: str) -> str:
        return self.filled.format(value)


def holder(script: Script) -> Holder:
    """A dictionary, an attribute, a list, a tuple or just a name."""
    form = script.rng.choice(("dict", "attribute", "list", "tuple", "name", "object"))
    if form == "attribute":
        script.imports.add("import types")
        return Holder("kept = types.SimpleNamespace()", "kept.value = {}", "kept.value")
    if form == "object":
        script.definitions.append("class Record:\n    value = None")
        return Holder("kept = Record()", "kept.value = {}", "kept.value")
    if form == "dict":
        return Holder("kept = {}", 'kept["value"] = {}', 'kept["value"]')
    if form == "list":
        return Holder("kept = []", "kept.append({})", "kept[0]")
    if form == "tuple":
        return Holder("", "kept = (0, {})", "kept[1]")
    return Holder("", "kept = {}", "kept")
