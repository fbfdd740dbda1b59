"""Custom Functions and hooks: what a backward writes, forgets, returns or keeps."""

from __future__ import annotations

from gradsight_dev.fuzz.families.kind import Kind
from gradsight_dev.fuzz.families.marked import indented, joined
from gradsight_dev.fuzz.families.parts import SMOOTH, add_batches, add_model, add_optimizer, add_update
from gradsight_dev.fuzz.families.script import Script

FAMILY = "custom functions and hooks"


def function(title: str, arguments: str, forward: str, backward: str) -> str:
    """A Function written out."""
    return joined(
        f"class {title}(torch.autograd.Function):",
        f"    @staticmethod\n    def forward(ctx, {arguments}):",
        indented(forward, 2),
        "    @staticmethod\n    def backward(ctx, grad):",
        indented(backward, 2),
    )


def _applied(script: Script, title: str, loss: str, arguments: str = "hidden", before: str = "") -> None:
    """The Function in a training loop, called directly, by an alias, by a function or by a module."""
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    form = "direct" if script.plain else script.rng.choice(("direct", "alias", "function", "lambda"))
    name = f"{title}.apply"
    if form == "alias":
        script.definitions.append(f"{title.lower()} = {title}.apply")
        name = title.lower()
    elif form == "function":
        script.definitions.append(f"def {title.lower()}(*given):\n    return {title}.apply(*given)")
        name = title.lower()
    elif form == "lambda":
        script.definitions.append(f"{title.lower()} = lambda *given: {title}.apply(*given)")
        name = title.lower()
    script.rounds.append(joined("hidden = net(x)", before, f"result = {name}({arguments})", loss))
    add_update(script)


LOSS = "loss = (result - y).pow(2).mean() + hidden.exp().mean()"


def saved_written(script: Script) -> None:
    """backward changes what forward saved."""
    bad, good = script.rng.choice(
        (
            ("kept.mul_(2)\n@-return grad * kept", "return grad * kept * 2"),
            ("kept *= 2\n@-return grad * kept", "return grad * kept * 2"),
            ("kept.data.mul_(2)\n@-return grad * kept", "return grad * kept * 2"),
            ("kept.mul_(2).mul_(grad)\n@-return kept", "return grad * kept * 2"),
        )
    )
    first, rest = bad.split("\n", 1)
    backward = f"(kept,) = ctx.saved_tensors\n@-{first} #!\n{rest}\n@+{good}"
    script.define(function("Square", "given", "ctx.save_for_backward(given)\nreturn given * given", backward))
    _applied(
        script, "Square", "loss = (result - y).pow(2).mean() + side", before="side = hidden.pow(2).mean()"
    )


def saved_read(script: Script) -> None:
    """backward works in place on what is its own."""
    backward = "(kept,) = ctx.saved_tensors\n@-slope = kept * 2\n@-slope.mul_(grad)\n@-return slope\n@+return grad * kept * 2"
    script.define(
        function("Square", "given", "ctx.save_for_backward(given)\nreturn given * given", backward), "Square"
    )
    _applied(script, "Square", LOSS)


def wrong_number(script: Script) -> None:
    """backward returns too few or too many gradients."""
    bad = script.rng.choice(("return grad * ctx.factor", "return grad * ctx.factor, None, grad"))
    script.define(
        function(
            "Scale",
            "given, factor",
            "ctx.factor = factor\nreturn given * factor",
            f"@-{bad} #!\n@+return grad * ctx.factor, None",
        )
    )
    _applied(script, "Scale", LOSS, "hidden, 2.0")


def gradient_none(script: Script) -> None:
    """backward returns None for an input that is trained."""
    backward = "given, weight = ctx.saved_tensors\n@-return grad * weight, None #!\n@+return grad * weight, (grad * given).sum(0)"
    script.define(
        function(
            "Scale", "given, weight", "ctx.save_for_backward(given, weight)\nreturn given * weight", backward
        )
    )
    add_model(script, "net", 4, 3)
    script.make("weight", "weight = nn.Parameter(torch.ones(3))")
    add_optimizer(script, "opt", "[*net.parameters(), weight]")
    add_batches(script, 4, 3)
    script.rounds.append(
        "hidden = net(x)\nresult = Scale.apply(hidden, weight) #!\nloss = (result - y).pow(2).mean()"
    )
    add_update(script)


def none_for_a_number(script: Script) -> None:
    """None for what needs no gradient."""
    backward = (
        "(mask,) = ctx.saved_tensors\n@-return grad * mask, None, None\n@+return grad.mul(mask), None, None"
    )
    forward = "ctx.save_for_backward(mask)\nreturn given * mask + shift"
    script.define(function("Mask", "given, mask, shift", forward, backward), "Mask")
    _applied(script, "Mask", LOSS, "hidden, (x[:, :3] > 0).float(), 0.5")


def kept_on_ctx(script: Script) -> None:
    """An intermediate on ctx, and a second derivative."""
    forward = "@-ctx.square = given * given #!\n@+ctx.save_for_backward(given)\nreturn given * given * given"
    backward = (
        "@-return grad * 3 * ctx.square #!\n@+(given,) = ctx.saved_tensors\n@+return grad * 3 * given * given"
    )
    script.define(function("Cube", "given", forward, backward))
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    script.rounds.append(
        "hidden = net(x)\ncube = Cube.apply(hidden)\n(slope,) = torch.autograd.grad(cube.sum(), hidden, create_graph=True)\n"
        "loss = (cube - y).pow(2).mean() + slope.pow(2).mean()"
    )
    add_update(script)


def dirty_leaf(script: Script) -> None:
    """mark_dirty on a leaf."""
    script.define(
        function("Shift", "given", "given.add_(1)\nctx.mark_dirty(given)\nreturn given", "return grad")
    )
    script.make("weight", "weight = nn.Parameter(torch.randn(4, 3))")
    add_optimizer(script, "opt", "[weight]")
    add_batches(script, 4, 3)
    script.rounds.append(
        "@-moved = Shift.apply(weight) #!\n@+moved = Shift.apply(weight * 1)\nloss = (x @ moved - y).pow(2).mean()"
    )
    add_update(script)


def not_marked(script: Script) -> None:
    """forward writes its input and does not say so."""
    write = script.rng.choice(("given.mul_(2)", "given *= 2", "given.add_(1)"))
    slope = "grad" if "add" in write else "grad * 2"
    forward = f"@-{write} #!\n@-return given #!\n@+return given.clone().{write.split('.')[1] if '.' in write else 'mul_(2)'}"
    script.define(function("Double", "given", forward, f"return {slope}"))
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    script.rounds.append(
        "hidden = net(x)\nside = hidden.pow(2).mean()\nresult = Double.apply(hidden)\nloss = (result - y).pow(2).mean() + side #!"
    )
    add_update(script)


def _hooked(script: Script, hook: str, where: str) -> None:
    script.define(f"def change(grad):\n{indented(hook)}")
    add_model(script, "net", 4, 3)
    script.make("first", "first = next(net.parameters())")
    if where == "parameter":
        script.setup.append("first.register_hook(change)" + (" #!" if "#!" in hook else ""))
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    at = "" if where == "parameter" else "hidden.register_hook(change)" + (" #!" if "#!" in hook else "")
    script.rounds.append(
        joined("hidden = torch.tanh(net(x))", at, "loss = (hidden - y).pow(2).mean() + hidden.mean()")
    )
    add_update(script)


def hook_returns_nothing(script: Script) -> None:
    """A hook whose result is lost."""
    bad = script.rng.choice(
        ("grad = grad * 0.1", "grad.mul(0.1)", "grad.clamp(-0.01, 0.01)", "grad = grad.clamp(-0.01, 0.01)")
    )
    good = bad.removeprefix("grad = ")
    _hooked(script, f"@-{bad} #!\n@+return {good}", script.rng.choice(("parameter", "result")))


def hook_writes(script: Script) -> None:
    """A hook that edits a gradient which others have too."""
    write = script.rng.choice(("grad.mul_(0.5)", "grad *= 0.5", "grad[:, 0] = 0"))
    good = "grad * torch.tensor([0.0, 1, 1])" if "[" in write else "grad * 0.5"
    script.define(f"def change(grad):\n@-    {write} #!\n@+    return {good}")
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    script.rounds.append(
        "hidden = net(x)\nleft, right = hidden.tanh(), hidden.sigmoid()\nboth = left + right\nright.register_hook(change) #!\nloss = (both - y).pow(2).mean()"
    )
    add_update(script)


def hook_of_another_shape(script: Script) -> None:
    """A hook that returns another shape."""
    bad = script.rng.choice(("grad.mean(0)", "grad.sum(1)", "grad[:2]", "grad.flatten()"))
    good = "grad.mean(0, keepdim=True).expand_as(grad)"
    form = script.rng.choice(("lambda", "function"))
    if form == "function":
        script.define(f"def change(grad):\n@-    return {bad} #!\n@+    return {good}")
        hook = "hidden.register_hook(change) #!"
    else:
        hook = f"@-hidden.register_hook(lambda grad: {bad}) #!\n@+hidden.register_hook(lambda grad: {good})"
    add_model(script, "net", 4, 3)
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 3)
    script.rounds.append(f"hidden = torch.tanh(net(x))\n{hook}\nloss = (hidden - y).pow(2).mean()")
    add_update(script)


def hook_returns(script: Script) -> None:
    """A hook that returns what it means, or only looks."""
    good = script.rng.choice(("return grad * 0.5", "return grad.mul(0.5)", "return 0.5 * grad"))
    _hooked(
        script,
        f"@-{good}\n@+scaled = grad * 0.5\n@+return scaled",
        script.rng.choice(("parameter", "result")),
    )


def hook_looks(script: Script) -> None:
    """A hook that reads and returns nothing."""
    script.definitions.append("NORMS = []")
    _hooked(script, "@-NORMS.append(grad.norm().item())\n@+pass", script.rng.choice(("parameter", "result")))


def backward_hook_before_inplace(script: Script) -> None:
    """A full backward hook on a layer whose result the next one changes in place."""
    act = script.rng.choice(("nn.ReLU(inplace=True)", "nn.ELU(inplace=True)", "nn.LeakyReLU(0.1, True)"))
    script.make(
        "net",
        f"net = nn.Sequential(nn.Linear(4, 5), nn.{script.rng.choice(SMOOTH)}(), nn.Linear(5, 5), {act}, nn.Linear(5, 1)) #!\n"
        "@-net[2].register_full_backward_hook(lambda module, taken, given: None) #!\n@+net[4].register_full_backward_hook(lambda module, taken, given: None)",
    )
    add_optimizer(script, "opt", "net.parameters()")
    add_batches(script, 4, 1)
    script.rounds.append("out = net(x) #!\nloss = (out - y).pow(2).mean()")
    add_update(script)


KINDS = (
    Kind(FAMILY, "saved written", saved_written, "harms", ("GS705",)),
    Kind(FAMILY, "wrong number", wrong_number, "harms", ("GS701",)),
    Kind(FAMILY, "gradient none", gradient_none, "harms", ("GS7", "GS5", "GS2")),
    Kind(FAMILY, "kept on ctx", kept_on_ctx, "harms", ("GS702", "GS706")),
    Kind(FAMILY, "dirty leaf", dirty_leaf, "harms", ("GS102", "GS7")),
    Kind(FAMILY, "not marked", not_marked, "harms", ("GS703", "GS1")),
    Kind(FAMILY, "hook returns nothing", hook_returns_nothing, "harms", ("GS",)),
    Kind(FAMILY, "hook writes", hook_writes, "harms", ("GS704",)),
    Kind(FAMILY, "hook of another shape", hook_of_another_shape, "harms", ("GS4", "GS3", "GS7")),
    Kind(FAMILY, "backward hook before inplace", backward_hook_before_inplace, "harms", ("GS1",)),
    Kind(FAMILY, "safe: own memory", saved_read, "same"),
    Kind(FAMILY, "safe: none for a number", none_for_a_number, "same"),
    Kind(FAMILY, "safe: hook returns", hook_returns, "same"),
    Kind(FAMILY, "safe: hook looks", hook_looks, "same"),
)
