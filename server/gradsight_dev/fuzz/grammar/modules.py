"""nn.Module classes with a `forward`: layers, activations in place, parameters, buffers, submodules, inheritance."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.compute import expression, fits
from gradsight_dev.fuzz.grammar.draft import Draft, Routine, Shape, Var

CLASS_NAMES = ("Net", "Block", "Encoder", "Head", "Mixer", "Critic", "Policy", "Cell")
ACTIVATIONS = (
    ("nn.ReLU()", 2.0),
    ("nn.ReLU(inplace=True)", 4.0),
    ("nn.Sigmoid()", 1.5),
    ("nn.Tanh()", 1.5),
    ("nn.GELU()", 1.0),
    ("nn.SiLU(inplace=True)", 0.5),
    ("nn.LeakyReLU(0.1, inplace=True)", 1.0),
    ("nn.ELU(inplace=True)", 0.5),
    ("nn.Hardtanh(inplace=True)", 0.3),
    ("nn.Dropout(0.5)", 0.7),
    ("nn.Dropout(0.5, inplace=True)", 0.7),
    ("nn.Softmax(dim=-1)", 0.7),
    ("nn.Softplus()", 0.4),
    ("nn.Identity()", 0.5),
    ("nn.Flatten()", 0.2),
)


def define_module(draft: Draft) -> tuple[Routine, str]:
    """A module class over (rows, width) tensors; returns how to call an instance and the class name."""
    width = draft.width
    shape: Shape = (draft.rows, width)
    cls = draft.fresh(CLASS_NAMES)
    base = "nn.Module"
    if draft.chance(0.12):
        base = draft.fresh(("Base", "Common"))
        with draft.definition(f"class {base}(nn.Module):"):
            draft.say("def __init__(self):")
            draft.say("    super().__init__()")
            draft.say(f"    self.entry = nn.Linear({width}, {width})")
            draft.say("")
            draft.say("def embed(self, x):")
            draft.say(
                f"    return {draft.pick(('self.entry(x)', 'torch.tanh(self.entry(x))', 'self.entry(x).sigmoid()'))}"
            )
    setup: list[str] = []
    applied: list[str] = []
    if base != "nn.Module":
        applied.append("self.embed({h})")
    _add_layers(draft, setup, applied)
    members = _add_tensors(draft, setup, shape)
    with draft.definition(f"class {cls}({base}):"):
        with draft.block("def __init__(self):"):
            draft.say(
                draft.pick(("super().__init__()", "super().__init__()", f"super({cls}, self).__init__()"))
            )
            for line in setup:
                draft.say(line)
        draft.say("")
        with draft.block("def forward(self, x):"):
            gives = _write_forward(draft, shape, applied, members)
        if draft.chance(0.2):
            draft.say("")
            draft.say("def penalty(self):")
            draft.say("    return sum(p.pow(2).sum() for p in self.parameters())")
    return Routine("model", (shape,), (gives,)), cls


def use_module(draft: Draft) -> bool:
    """A module class, an instance of it and a call."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.find(shape=(draft.rows, draft.width))
    if source is None:
        return False
    routine, cls = define_module(draft)
    name = draft.fresh(("model", "net", "module", "layer"))
    draft.say(f"{name} = {cls}()")
    if draft.chance(0.15):
        draft.say(f"{name}.{draft.pick(('eval()', 'train()', 'requires_grad_(False)', 'zero_grad()'))}")
    draft.scope.routines.append(Routine(name, routine.takes, routine.gives))
    out = draft.fresh(("pred", "output", "res", "y_hat"))
    draft.say(f"{out} = {name}({source.text})")
    draft.add(Var(out, routine.gives[0], draft.group()))
    return True


def use_sequential(draft: Draft) -> bool:
    """`nn.Sequential(...)` without a class."""
    source = draft.find(shape=(draft.rows, draft.width))
    if source is None or draft.scope.in_function or draft.scope.in_loop:
        return False
    name = draft.fresh(("seq", "stacked", "mlp", "tower"))
    draft.say(f"{name} = {sequential(draft)}")
    draft.scope.routines.append(Routine(name, (source.shape,), (source.shape,)))
    out = draft.fresh(("pred", "output", "res", "y_hat"))
    draft.say(f"{out} = {name}({source.text})")
    draft.add(Var(out, source.shape, draft.group()))
    return True


def use_layer(draft: Draft) -> bool:
    """A single layer: `fc = nn.Linear(3, 3)`, or an activation object applied to a tensor."""
    if draft.scope.in_function or draft.scope.in_loop:
        return False
    source = draft.find(where=lambda known: fits("any", known.shape))
    if source is None:
        return False
    out = draft.fresh(("pred", "output", "res", "y_hat"))
    if draft.chance(0.5):
        name = draft.fresh(("fc", "lin", "dense"))
        draft.say(f"{name} = nn.Linear({source.shape[-1]}, {source.shape[-1]})")
        draft.say(f"{out} = {name}({source.text})")
        draft.add(Var(f"{name}.weight", (source.shape[-1],) * 2, draft.group(), leaf=True, fixed=True))
        draft.add(Var(out, source.shape, draft.group()))
        return True
    activation = draft.weighted(ACTIVATIONS)
    if "Flatten" in activation or (
        "inplace" in activation and (source.leaf or source.refuses) and not draft.dares()
    ):
        return False
    name = draft.fresh(("act", "nonlin", "squasher"))
    draft.say(f"{name} = {activation}")
    draft.say(f"{out} = {name}({source.text})")
    draft.add(Var(out, source.shape, source.group if "inplace" in activation else draft.group(), source.grad))
    return True


def sequential(draft: Draft) -> str:
    """The text of a Sequential of Linear layers and activations."""
    width = draft.width
    layers: list[str] = []
    for _ in range(draft.rng.randint(1, 3)):
        layers.append(f"nn.Linear({width}, {width})")
        if draft.chance(0.8):
            layers.append(draft.weighted(ACTIVATIONS))
            if draft.dares() and draft.chance(0.35):
                layers.append(draft.weighted(ACTIVATIONS))
    if draft.chance(0.15):
        layers.append(draft.pick((f"nn.LayerNorm({width})", f"nn.BatchNorm1d({width})")))
    return f"nn.Sequential({', '.join(layers)})"


def _add_layers(draft: Draft, setup: list[str], applied: list[str]) -> None:
    width = draft.width
    for index in range(draft.rng.randint(1, 3)):
        style = draft.weighted(
            (
                ("linear", 5.0),
                ("sequential", 1.5),
                ("list", 1.0),
                ("norm", 1.0),
                ("conv", 0.4),
                ("sequence", 0.5),
                ("attention", 0.3),
                ("table", 0.3),
                ("bilinear", 0.2),
            )
        )
        if style == "linear":
            setup.append(
                f"self.fc{index} = nn.Linear({width}, {width}{draft.pick(('', '', ', bias=False'))})"
            )
            applied.append(f"self.fc{index}({{h}})")
        elif style == "sequential":
            setup.append(f"self.net{index} = {sequential(draft)}")
            applied.append(f"self.net{index}({{h}})")
        elif style == "list":
            setup.append(
                f"self.layers{index} = nn.ModuleList([nn.Linear({width}, {width}) for _ in range(2)])"
            )
            applied.append(f"for:self.layers{index}")
        elif style == "norm":
            setup.append(
                f"self.norm{index} = {draft.pick((f'nn.LayerNorm({width})', f'nn.BatchNorm1d({width})'))}"
            )
            applied.append(f"self.norm{index}({{h}})")
        elif style == "conv":
            setup.append(f"self.conv{index} = nn.Conv1d(1, 1, 3, padding=1)")
            applied.append(f"self.conv{index}({{h}}.unsqueeze(1)).squeeze(1)")
        elif style == "sequence":
            setup.append(f"self.rnn{index} = nn.{draft.pick(('LSTM', 'GRU', 'RNN'))}({width}, {width})")
            applied.append(f"self.rnn{index}({{h}})[0]")
        elif style == "attention":
            setup.append(f"self.attn{index} = nn.MultiheadAttention({width}, 1)")
            applied.append(f"self.attn{index}({{h}}, {{h}}, {{h}})[0]")
        elif style == "table":
            setup.append(f"self.table{index} = nn.Embedding(5, {width})")
            applied.append(f"{{h}} + self.table{index}(torch.tensor(1))")
        else:
            setup.append(f"self.bil{index} = nn.Bilinear({width}, {width}, {width})")
            applied.append(f"self.bil{index}({{h}}, {{h}})")
        if draft.chance(0.7):
            setup.append(f"self.act{index} = {draft.weighted(ACTIVATIONS)}")
            applied.append(f"self.act{index}({{h}})")


def _add_tensors(draft: Draft, setup: list[str], shape: Shape) -> list[Var]:
    members: list[Var] = []
    if draft.chance(0.4):
        setup.append(f"self.scale = nn.Parameter({draft.pick(('torch.ones', 'torch.randn'))}({draft.width}))")
        members.append(Var("self.scale", (draft.width,), draft.group(), leaf=True, fixed=True))
    if draft.chance(0.3):
        setup.append(
            f'self.register_buffer("running", torch.{draft.pick(("zeros", "ones"))}({shape[0]}, {shape[1]}))'
        )
        members.append(Var("self.running", shape, draft.group(), grad=False))
    if draft.chance(0.15):
        setup.append(f"self.cache = torch.zeros({draft.width})")
        members.append(Var("self.cache", (draft.width,), draft.group(), grad=False))
    return members


def _write_forward(draft: Draft, shape: Shape, applied: list[str], members: list[Var]) -> Shape:
    draft.scope.in_function = True
    draft.scope.variables = list(members)
    draft.add(Var("x", shape, draft.group(), leaf=not draft.dares()))
    names = draft.pick(
        (("h", "h", "h", "h"), ("h", "z", "z", "out"), ("x", "x", "x", "x"), ("h", "h1", "h2", "h3"))
    )
    current = "x"
    for position, text in enumerate(applied):
        name = names[min(position, len(names) - 1)]
        if text.startswith("for:"):
            with draft.block(f"for layer in {text[4:]}:"):
                call = draft.pick(
                    (
                        "layer({0})",
                        "torch.relu(layer({0}))",
                        "F.relu(layer({0}), inplace=True)",
                        "torch.sigmoid(layer({0}))",
                    )
                )
                if current == "x" and name != "x":
                    name = "x"
                draft.say(f"{name} = {call.format(current)}")
                if draft.chance(0.3):
                    draft.say(f"{name} {draft.pick(('+=', '*='))} {draft.number()}")
        else:
            call = text.format(h=current)
            if draft.chance(0.15):
                call = draft.pick(
                    ("{1} + {0}", "torch.sigmoid({0})", "F.relu({0}, inplace=True)", "{0} * {0}.detach()")
                ).format(call, current)
            draft.say(f"{name} = {call}")
        current = name
        draft.add(Var(current, shape, draft.group()))
        if draft.chance(0.35):
            draft.write_some(1, 1)
    style = draft.weighted((("plain", 5.0), ("expression", 2.0), ("residual", 1.0), ("any", 1.5)))
    if style == "residual":
        draft.say(f"return x + {current}" if current != "x" else "return x * 2")
        return shape
    result = draft.find(shape=shape, where=lambda known: known.grad) if style == "any" else None
    result = result or Var(current, shape, draft.group())
    if style == "expression":
        text, _ = expression(draft, result, keep_shape=True)
        draft.say(f"return {text}")
    else:
        draft.say(f"return {result.text}")
    return shape
