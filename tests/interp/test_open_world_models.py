"""Model files whose layers, helpers and callers are elsewhere: what fails whatever they do, and what cannot be told."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

PARTS = """
from elsewhere import attention, helper, Output, build
class Parts(nn.Module):
    def __init__(self, extra=None):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(4, 4), nn.Linear(4, 4), nn.LayerNorm(4)
        self.extra = extra
class Net(Parts):
"""


def model(body: str) -> str:
    return PARTS + "\n".join("    " + line for line in body.strip("\n").split("\n")) + "\n"


def test_a_helper_method_is_executed_from_forward() -> None:
    program = model("""
def features(self, x):
    h = torch.sigmoid(self.a(x))
    h += 1  # GS101
    return self.b(h)
def forward(self, x):
    return self.features(x)
""")
    check(program)
    check(program.replace("h += 1  # GS101", "h = h + 1"))


def test_a_helper_method_that_nobody_calls_is_executed_alone() -> None:
    check(
        model("""
def forward_features(self, x):
    h = torch.sigmoid(self.a(x))
    h += 1  # GS101
    return self.b(h)
""")
    )


def test_a_write_to_what_a_layer_saved_before_unknown_code_is_reported() -> None:
    check(
        model("""
def forward(self, x):
    y = attention(self.norm(x)) + x
    x.clamp_(min=0)  # GS101
    return y
""")
    )


def test_a_write_to_what_only_unknown_code_was_given_is_not_judged() -> None:
    check(
        model("""
def forward(self, x):
    h = self.a(x)
    y = attention(h)
    h += 1
    return y + h
""")
    )


@pytest.mark.parametrize("end", ["helper(self.b(h))", "Output(hidden=self.b(h))", "self.extra(self.b(h))"])
def test_unknown_code_passes_the_graph_on(end: str) -> None:
    program = model(f"""
def forward(self, x):
    h = torch.sigmoid(self.a(x))
    h += 1  # GS101
    return {end}
""")
    check(program)
    check(program.replace("torch.sigmoid(self.a(x))", "self.a(x)").replace("  # GS101", ""))


@pytest.mark.parametrize(
    ("signature", "use"),
    [
        ("x: torch.Tensor", "h = torch.sigmoid(x[:, 0])"),
        ("x: 'Optional[torch.Tensor]' = None", "h = torch.sigmoid(x)"),
        ("pair: tuple[torch.Tensor, torch.Tensor]", "first, second = pair; h = torch.sigmoid(first)"),
        ("mask_tokens", "h = torch.sigmoid(mask_tokens)"),
        ("x: 'Float[torch.Tensor, \"b t\"]'", "h = torch.sigmoid(x)"),
    ],
)
def test_an_argument_that_is_used_as_a_tensor_is_one(signature: str, use: str) -> None:
    check(
        model(f"""
def forward(self, {signature}):
    {use}
    h += 1  # GS101
    return h
""")
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("h = torch.tensor(self.a(x))", "GS201"),
        ("h = torch.from_numpy(self.a(x).detach().numpy())", "GS202"),
        ("h = x * self.a(x).mean().item()", "GS202"),
    ],
)
def test_a_cut_that_is_hardly_ever_meant_needs_no_loop(line: str, code: str) -> None:
    check(
        model(f"""
def forward(self, x):
    {line}  # {code}
    return self.b(h)
""")
    )


@pytest.mark.parametrize(
    "line",
    [
        "h = self.a(x).detach()",
        "h = self.a(x); h = h / h.abs().max().item()",
        "h = torch.tensor(x.shape) + self.a(x)",
        "n = len(self.a(x).tolist()); h = self.a(x)[:n]",
    ],
)
def test_a_cut_that_may_be_meant_is_not_reported_without_a_loop(line: str) -> None:
    check(
        model(f"""
def forward(self, x):
    {line}
    return self.b(h)
""")
    )


@pytest.mark.parametrize("write", ["h.data.mul_(2)", "with torch.no_grad(): h.mul_(2)"])
def test_a_silent_write_to_what_is_returned_is_reported(write: str) -> None:
    program = model(f"""
def forward(self, x):
    h = self.a(x)
    {write}  # GS105
    return h
""")
    check(program)
    check(program.replace(write + "  # GS105", "h = h * 2"))


@pytest.mark.parametrize("made", ["attention(self.a(x))", "attention(self.a(x)).sample", "self.a(x)"])
@pytest.mark.parametrize("end", ["h", "(h,)", "(x, [h])", "{'h': h}", "Output(sample=h)", "helper(h).sample"])
def test_a_silent_write_to_what_is_returned_in_a_container_or_by_unknown_code_is_reported(
    made: str, end: str
) -> None:
    program = model(f"""
def forward(self, x):
    h = {made}
    h.data.mul_(2)  # GS105
    return {end}
""")
    check(program)
    check(program.replace("h.data.mul_(2)  # GS105", "h = h * 2"))


@pytest.mark.parametrize("end", ["y", "(y,)", "Output(sample=y)"])
def test_a_silent_write_to_what_is_given_to_unknown_code_before_is_not_judged(end: str) -> None:
    check(
        model(f"""
def forward(self, x):
    h = self.a(x)
    y = helper(h)
    h.data.mul_(2)
    return {end}
""")
    )


def test_a_function_that_sets_weights_may_write_without_grad_mode() -> None:
    program = model("""
def init_scaled(self, x):
    h = self.a(x)
    with torch.no_grad():
        h.mul_(2)
    return h
""")
    check(program)
    check(program.replace("init_scaled", "decode").replace("h.mul_(2)", "h.mul_(2)  # GS105"))


def test_a_class_with_an_unknown_base_and_a_forward_is_a_module() -> None:
    program = """
        from elsewhere import BaseModel
        class Net(BaseModel):
            def __init__(self, config):
                super().__init__(config)
                self.layer = nn.Linear(config.size, 1)
            def forward(self, x):
                h = torch.sigmoid(self.layer(x))
                h *= 2  # GS101
                return h
    """
    check(program)
    check(program.replace("h *= 2  # GS101", "h = h * 2"))


def test_a_processor_that_applies_the_layers_of_a_module_is_executed() -> None:
    program = """
        class Processor:
            def __call__(self, attn, hidden):
                weights = attn.to_q(hidden).softmax(-1)
                weights *= 2  # GS101
                return attn.to_out(weights)
    """
    check(program)
    check(program.replace("weights *= 2  # GS101", "weights = weights * 2"))


def test_a_data_transform_is_not_taken_for_a_forward() -> None:
    check("""
        def normalize(image):
            scaled = torch.sigmoid(image)
            scaled *= 2
            return scaled
    """)


def test_an_arm_behind_an_optional_layer_is_executed() -> None:
    check(
        model("""
def forward(self, x):
    h = torch.sigmoid(self.a(x))
    if self.extra is not None:
        h += self.extra(x)  # GS101
    return self.b(h)
""")
    )


def test_a_dropout_in_place_is_taken_to_drop_something_where_its_probability_is_not_known() -> None:
    program = model("""
def attend(self, x, dropout: float = 0.0):
    weights = torch.softmax(self.a(x), -1)
    weights = F.dropout(weights, p=dropout, training=self.training, inplace=True)  # GS101
    return self.b(weights)
""")
    check(program)
    check(program.replace("p=dropout, training=self.training", "p=0.5"))
    check(program.replace("p=dropout", "p=0.0").replace("  # GS101", ""))
    check(program.replace("training=self.training", "training=False").replace("  # GS101", ""))


def test_a_dropout_in_place_on_what_nothing_saved_is_safe_whatever_its_probability() -> None:
    check(
        model("""
def attend(self, x, dropout: float = 0.0):
    weights = F.dropout(self.a(x), p=dropout, training=self.training, inplace=True)
    return self.b(weights)
""")
    )


OUTPUTS = """
from collections import OrderedDict
from dataclasses import dataclass, fields
class ModelOutput(OrderedDict):
    def __post_init__(self):
        described = fields(self)
        if not all(field.default is None for field in described[1:]):
            raise ValueError("one required field at most")
        for field in described:
            value = self.__dict__.get(field.name)
            if value is not None:
                self[field.name] = value
    def __setattr__(self, name, value):
        if name in {field.name for field in fields(self)} and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)
    def to_tuple(self):
        return tuple(self[key] for key in self.keys())
@dataclass
class Pooled(ModelOutput):
    last: torch.Tensor | None = None
    unused: torch.Tensor | None = None
    pooled: torch.Tensor | None = None
"""


def test_an_output_that_is_a_dict_with_declared_fields_gives_each_of_them_back() -> None:
    program = (
        OUTPUTS
        + """
net = nn.Linear(3, 3)
hidden = torch.sigmoid(net(torch.ones(2, 3)))
last, pooled = Pooled(last=hidden, pooled=torch.tanh(hidden)).to_tuple()
pooled += 1  # GS101
pooled.sum().backward()
out = Pooled(last=torch.sigmoid(net(torch.ones(2, 3))))
out.pooled = torch.tanh(out.last)
second = out["pooled"]
second *= 2  # GS101
out.pooled.sum().backward()
"""
    )
    check(program)
    check(
        program.replace("pooled += 1  # GS101", "last *= 0  # GS101").replace(
            "  # GS101\nout.p", "  # GS101\nout.p"
        )
    )
    safe = program.replace("pooled += 1  # GS101", "pooled = pooled + 1")
    check(safe.replace("second *= 2  # GS101", "second = second * 2"))


CELLS = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.v = nn.Linear(3, 3), 0.0
    def reset(self):
        self.v = 0.0
    def forward(self, x):
        self.v = self.v + self.a(x)  # GS403
        return torch.sigmoid(self.v)
net = nn.Sequential(*[Cell() for _ in range(9)])
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(5):
    optimizer.zero_grad()
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "reset",
    [
        "for m in net.modules():\n        if hasattr(m, 'reset'):\n            m.reset()",
        "for name, m in net.named_modules():\n        if isinstance(m, Cell):\n            m.v = 0.0",
        "for cell in list(net):\n        cell.reset()",
    ],
)
def test_a_loop_over_many_modules_may_have_reset_each_of_them(reset: str) -> None:
    check(CELLS.replace("  # GS403", "") + "    " + reset + "\n")


def test_state_that_no_loop_over_modules_resets_is_carried_over() -> None:
    check(CELLS)
    check(
        "net = None\n" + CELLS.replace("optimizer = ", "for m in net.modules():\n    m.train()\noptimizer = ")
    )
    check(CELLS + "    for p in net.parameters():\n        p.data.clamp_(-1, 1)\n")


@pytest.mark.parametrize("move", ["half()", "cuda()", "to('cuda')", "bfloat16()"])
def test_what_unknown_code_returned_and_is_moved_is_a_module(move: str) -> None:
    check(f"from elsewhere import build_model\nmodel = build_model(3)\nmodel.{move}\n")
    check(f"hidden = nn.Linear(2, 2)(torch.ones(1, 2))\nhidden.{move}  # GS209\nhidden.sum().backward()\n")


def test_a_result_that_the_module_keeps_is_not_copied_by_a_function_that_reads_it() -> None:
    check("""
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.v = nn.Linear(3, 3), 0.0
    def forward(self, x):
        self.v = self.v + self.a(x)
        return torch.sigmoid(self.v)
net = Cell()
hidden = torch.sigmoid(net.a(torch.ones(1, 3)))
net(torch.ones(1, 3))
def train(x):
    net(x).sum().backward()
def again(x):
    out = hidden * x
    out.sum().backward()
def copied():
    import copy
    out = net.a(torch.ones(1, 3))
    copy.deepcopy(out)  # GS306
    out.sum().backward()
""")


def test_arguments_of_which_plain_numbers_are_computed_are_numbers() -> None:
    program = model("""
def weights(self, x, tau, steps):
    decay = torch.tensor([math.exp(-1 / tau * step) for step in range(1, 9)])
    return self.a(x) * decay
""")
    check("import math\n" + program)
    of_layer = program.replace("-1 / tau", "self.b(x).sum()").replace(
        "range(1, 9)])", "range(1, 9)])  # GS202"
    )
    check("import math\n" + of_layer)


@pytest.mark.parametrize(
    "write", ["torch.clamp_max_(h, 1.0)", "h.clamp_min_(0)", "h.clip_(0, 1)", "h.clamp_(0, 1)"]
)
def test_a_projection_without_grad_mode_is_meant(write: str) -> None:
    program = model(f"""
def forward(self, x):
    h = self.a(x)
    with torch.no_grad():
        {write}
    return h * self.b(x)
""")
    check(program)
    check(program.replace(write, "h.mul_(2)  # GS105"))
