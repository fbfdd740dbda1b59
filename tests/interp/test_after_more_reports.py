"""Programs after users' reports: each hazard on its line, and the right program beside it silent."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

ROWS = """
model = nn.Linear(4, 8)
data = torch.randn(6, 10, 4)
for x{more} in {source}:
    y = model(x)
    {write}
    y.sum().backward()
"""


@pytest.mark.parametrize(("more", "source"), [("", "data"), (", _", "zip(data, data)")])
@pytest.mark.parametrize(
    "write", ["x.mul_(2)", "x.detach().mul_(2)", "o = x.detach().contiguous(); o[:2] = 0.0"]
)
def test_a_row_of_a_tensor_lies_in_its_memory(more: str, source: str, write: str) -> None:
    check(ROWS.format(more=more, source=source, write=f"{write}  # GS101"))


@pytest.mark.parametrize(
    "write", ["x = x * 2", "o = x.clone(); print(o.mul_(2))", "o = x.double(); o[:2] = 0.0"]
)
def test_a_copy_of_a_row_may_be_written(write: str) -> None:
    check(ROWS.format(more="", source="data", write=write))


STOPPER = """
import copy

class Stopper:
    def __init__(self):
        self.score = None

    def __call__(self, score, model):
        if self.score is None or score < self.score:
            self.score = score
            self.best_model = {kept}

model = nn.Linear(3, 1)
stopper = Stopper()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(6):
    loss = model(torch.randn(4, 3)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    stopper(loss.item(), model)
{use}
"""


@pytest.mark.parametrize(
    "use", ["best = stopper.best_model", "def last():\n    return stopper.best_model\nbest = last()"]
)
def test_a_model_that_another_class_keeps_is_no_copy(use: str) -> None:
    check(STOPPER.format(kept="model  # GS514", use=use))


@pytest.mark.parametrize(
    ("kept", "use"), [("copy.deepcopy(model)", "best = stopper.best_model"), ("model", "pass")]
)
def test_a_copy_and_a_name_that_nobody_reads_are_silent(kept: str, use: str) -> None:
    check(STOPPER.format(kept=kept, use=use))


METHODS = """
class Trainer:
    def __init__(self, model, parts=4):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.parts = parts

    def part(self, x):
        {before}
        (self.model(x).pow(2).mean() / self.parts).backward()

    def apply(self):
        self.optimizer.step()
        {after}

    def train(self):
        for i in range(8):
            self.part(torch.randn(4, 3))
            if (i + 1) % self.parts == 0:
                self.apply()

Trainer(nn.Linear(3, 1)).train()
"""


def test_a_clear_in_each_part_is_reported_where_a_method_steps() -> None:
    check(METHODS.format(before="self.optimizer.zero_grad()  # GS502", after="pass"))


def test_a_clear_by_the_method_that_steps_is_silent() -> None:
    check(METHODS.format(before="pass", after="self.optimizer.zero_grad()"))


TASKS = """
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(4):
    {first}
    for k in range(3):
        loss = model(torch.randn(4, 3)).pow(2).mean()
        {inner}
        loss.backward()
        {collected}
    {between}
    optimizer.step()
"""
DIVIDED = "for p in model.parameters(): p.grad.div_(3)"


def test_a_mean_of_what_is_left_does_not_excuse_the_clear() -> None:
    check(TASKS.format(first="pass", inner="model.zero_grad()  # GS502", collected="pass", between=DIVIDED))


def test_gradients_that_are_collected_before_the_clear_are_silent() -> None:
    check(
        TASKS.format(
            first="kept = [torch.zeros_like(p) for p in model.parameters()]",
            inner="model.zero_grad()",
            collected="for g, p in zip(kept, model.parameters()): g.add_(p.grad)",
            between="for g, p in zip(kept, model.parameters()): p.grad.copy_(g / 3)",
        )
    )
    check(TASKS.format(first="optimizer.zero_grad()", inner="pass", collected="pass", between=DIVIDED))


HANDED = """
def weight_of(prob):
    {write}
    return 1 - prob

model = nn.Linear(3, 1)
prob = model(torch.randn(10, 3)) * 0.25 + 0.5
weight = weight_of({given})
loss = (weight * prob.log()).mean() + (prob.mean() - 0.5).abs()
loss.backward()
"""


def test_a_function_writes_into_the_detached_value_that_it_was_given() -> None:
    check(HANDED.format(write="prob.clamp_(0.2, 0.8)  # GS107", given="prob.detach()"))


@pytest.mark.parametrize(
    ("write", "given"),
    [("prob = prob.clamp(0.2, 0.8)", "prob.detach()"), ("prob.clamp_(0.2, 0.8)", "prob.detach().clone()")],
)
def test_a_clamp_out_of_place_and_a_copy_are_silent(write: str, given: str) -> None:
    check(HANDED.format(write=write, given=given))


EDGES = """
layer = nn.Linear(4, 4)
x = torch.randn(5, 4)
src, dst = torch.tensor([[0, 1, 2, 3, 4], {dst}])
out = torch.zeros(5, 4)
{write}
out.pow(2).sum().backward()
"""


def test_row_numbers_that_are_written_out_twice_lose_a_sum() -> None:
    check(EDGES.format(dst="[1, 1, 1, 0, 0]", write="out[dst] += layer(x[src])  # GS107"))


@pytest.mark.parametrize(
    ("dst", "write"),
    [
        ("[4, 3, 2, 1, 0]", "out[dst] += layer(x[src])"),
        ("[1, 1, 1, 0, 0]", "out = out.index_add(0, dst, layer(x[src]))"),
        ("[1, 1, 1, 0, 0]", "out[src] += layer(x[dst])"),
    ],
)
def test_row_numbers_that_come_once_are_silent(dst: str, write: str) -> None:
    check(EDGES.format(dst=dst, write=write))


HOOKED = """
class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, grad):
        {body}

net = nn.Linear(3, 4)
net.weight.register_hook(Scale(0.1))
net(torch.randn(4, 3)).pow(2).mean().backward()
"""


def test_an_object_is_a_hook_by_its_call() -> None:
    check(HOOKED.format(body="grad * self.factor  # GS704"))
    check(HOOKED.format(body="return grad[:2]  # GS409"))


def test_an_object_that_returns_the_gradient_is_silent() -> None:
    check(HOOKED.format(body="return grad * self.factor"))
    check(HOOKED.format(body="print(grad.norm())"))


MASKED = """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.active = 3
        self.fc = nn.Linear(4, 5)
        self.fc.weight.register_hook(self.masked)

    def masked(self, grad):
        {body}

    def forward(self, x):
        return self.fc(x)

Head()(torch.randn(6, 4)).pow(2).mean().backward()
"""


def test_a_method_is_a_hook_that_is_tried() -> None:
    check(MASKED.format(body="return grad[: self.active]  # GS409"))
    check(MASKED.format(body="return grad * (torch.arange(5) < self.active)[:, None]"))


MEMBERS = """
from torch.func import functional_call, stack_module_state, vmap

class Member(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        h = self.fc(x)
        {pad}
        return out

members = [Member() for _ in range(2)]
params, buffers = stack_module_state(members)

def call(p, b, x):
    return functional_call(members[0], (p, b), (x,))

out = vmap(call, in_dims=(0, 0, None))(params, buffers, torch.randn(3, 3))
out.pow(2).mean().backward()
"""


def test_members_of_an_ensemble_write_into_what_vmap_does_not_batch() -> None:
    check(MEMBERS.format(pad="out = x.new_zeros(4, 2); out[:3] = h  # GS109"))


def test_members_of_an_ensemble_that_write_nothing_are_silent() -> None:
    check(MEMBERS.format(pad="out = torch.cat([h, x.new_zeros(1, 2)])"))


EXPERTS = """
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.out = nn.Linear(3, 1)

    def forward(self, x, task):
        return self.out({used})

model = nn.parallel.DistributedDataParallel({made}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(4, 3), step % 3).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_part_that_an_iteration_leaves_out_is_waited_for() -> None:
    check(EXPERTS.format(used="self.experts[task](x)", made="Experts())  # GS517"))


@pytest.mark.parametrize(
    ("used", "made"),
    [
        ("self.experts[task](x)", "Experts(), find_unused_parameters=True)"),
        ("sum(one(x) for one in self.experts)", "Experts())"),
    ],
)
def test_parts_that_are_asked_for_or_all_used_are_silent(used: str, made: str) -> None:
    check(EXPERTS.format(used=used, made=made))


PLACES = """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu = nn.Linear(6, 3)
        self.spread = nn.Linear(6, 3)

    def forward(self, x):
        return {{"mu": self.mu(x), "spread": self.spread(x)}}

def drawn(stats, noise):
    z = stats["mu"]
    {write}
    return z

def distance(stats):
    return (stats["mu"].pow(2) + stats["spread"].exp() - stats["spread"]).mean()

encoder, decoder = Encoder(), nn.Linear(3, 6)
x = torch.randn(8, 6)
stats = encoder(x)
{early}
z = drawn(stats, torch.randn(8, 3))
loss = F.mse_loss(decoder(z), x) + {late}
loss.backward()
"""


def test_an_entry_is_changed_by_the_function_that_was_given_its_dict() -> None:
    check(
        PLACES.format(
            write='z += noise * stats["spread"].exp()  # GS107', early="pass", late="distance(stats)"
        )
    )


@pytest.mark.parametrize(
    ("write", "early", "late"),
    [
        ('z = z + noise * stats["spread"].exp()', "pass", "distance(stats)"),
        ("z += noise", 'penalty = stats["mu"].mean()', "penalty"),
    ],
)
def test_an_entry_that_is_not_changed_or_not_read_again_is_silent(write: str, early: str, late: str) -> None:
    check(PLACES.format(write=write, early=early, late=late))


REFINED = """
class Refined(nn.Module):
    def __init__(self):
        super().__init__()
        self.refine = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.fuse = nn.Linear(3, 1)

    def forward(self, *maps):
        {body}

net = Refined()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(4, 3), torch.randn(4, 3)).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "body",
    [
        "for i, x in enumerate(maps):\n            x = self.refine[i](x)  # GS209\n        return self.fuse(sum(maps))",
        "x = maps[0]\n        for layer in self.refine:\n            out = layer(x)  # GS209\n        return self.fuse(out)",
    ],
)
def test_a_loop_loses_what_its_layers_compute(body: str) -> None:
    check(REFINED.format(body=body))


@pytest.mark.parametrize(
    "body",
    [
        "out = []\n        for i, x in enumerate(maps):\n            x = self.refine[i](x)\n            out.append(x)\n        return self.fuse(sum(out))",
        "x = maps[0]\n        for layer in self.refine:\n            x = layer(x)\n        return self.fuse(x)",
        "total = 0\n        for layer in self.refine:\n            out = layer(maps[0])\n            total = total + out\n        return self.fuse(total)",
        "for i, x in enumerate(maps):\n            x = self.refine[1](self.refine[0](x))\n        return self.fuse(x)",
    ],
)
def test_a_loop_that_passes_its_results_on_is_silent(body: str) -> None:
    check(REFINED.format(body=body))


FORWARD_HOOK = """
def halved(module, inputs, output):
    {body}

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
net[0].register_forward_hook(halved)
net(torch.randn(4, 3)).pow(2).mean().backward()
"""


def test_a_forward_hook_that_returns_nothing_changes_nothing() -> None:
    check(FORWARD_HOOK.format(body="output = output * 0.5  # GS209"))


@pytest.mark.parametrize(
    "body",
    ["return output * 0.5", "print(output.mean())", "output = output.detach()\n    print(output.mean())"],
)
def test_forward_hooks_that_return_or_look_on_are_silent(body: str) -> None:
    check(FORWARD_HOOK.format(body=body))


VIEW_HOOK = """
table = nn.Embedding(6, 3)
mask = torch.ones(6, 1)
rows = table.weight{part}
rows.register_hook(lambda grad: grad * mask){said}
optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
optimizer.zero_grad()
{loss}.pow(2).sum().backward()
optimizer.step()
"""


def test_a_hook_on_a_view_is_not_the_parameter_s() -> None:
    check(VIEW_HOOK.format(part="[:]", said="  # GS209", loss="table(torch.tensor([0, 4]))"))


@pytest.mark.parametrize(("part", "loss"), [("", "table(torch.tensor([0, 4]))"), ("[:]", "rows")])
def test_a_hook_on_what_the_loss_comes_from_is_silent(part: str, loss: str) -> None:
    check(VIEW_HOOK.format(part=part, said="", loss=loss))


TWO_LOSSES = """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        h = self.body(x)
        return self.a(h).pow(2).mean(), self.b(h).pow(2).mean()

def train(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        first, second = net(torch.randn(4, 3))
        optimizer.zero_grad()
        first.backward(retain_graph=True)
        {between}
        second.backward()
        optimizer.step()

train(Two())
"""


def test_a_part_whose_gradients_are_dropped_each_time_is_reported_at_the_clear() -> None:
    check(TWO_LOSSES.format(between="optimizer.zero_grad()  # GS502"))
    check(TWO_LOSSES.format(between="pass"))


KEPT = """
class Average:
    def __init__(self, model):
        self.model = model
        self.shadow = {{}}
        for name, p in model.named_parameters():
            self.shadow[name] = {kept}

    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name] = 0.5 * self.shadow[name] + 0.5 * p.data

model = nn.Linear(4, 2)
average = Average(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).pow(2).mean().backward()
    optimizer.step()
    average.update()
"""


def test_what_is_kept_of_a_parameter_moves_with_it() -> None:
    check(KEPT.format(kept="p.data  # GS107"))
    check(KEPT.format(kept="p.data.clone()"))


GIVEN = """
class Steps:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, batch):
        for step in self.steps:
            batch["image"] = step(batch["image"])
        return batch

def brighten(image):
    {write}
    return image

def turned(image):
    return image.flip(-1)

model = nn.Linear(4, 3)
steps = Steps(brighten, turned)
for _ in range(2):
    image = torch.rand(2, 4)
    strong = steps({{"image": image}})
    (model(image) - model(strong["image"])).pow(2).mean().backward()
"""


def test_what_a_dict_is_given_is_the_caller_s_own_tensor() -> None:
    check(GIVEN.format(write="image += 0.3  # GS107"))
    check(GIVEN.format(write="image = image + 0.3"))


POOLED = """
proj = nn.Linear(3, 2)
rows = torch.tensor({rows})
pooled = torch.zeros(3, 2)
pooled[rows] = proj(torch.randn(3, 3)){said}
pooled.pow(2).sum().backward()
"""


def test_a_row_that_is_assigned_twice_keeps_one_value() -> None:
    check(POOLED.format(rows="[0, 0, 1]", said="  # GS107"))
    check(POOLED.format(rows="[2, 0, 1]", said=""))
    check(POOLED.format(rows="[0, 0, 1]", said="[:1].expand(3, 2)"))
    check(POOLED.format(rows="[0, 0, 1]", said="[0]"))


def test_an_average_that_moves_in_its_own_state_is_no_data() -> None:
    check("""
        import copy

        class Average:
            def __init__(self, model):
                self.shadow = copy.deepcopy(model)

            @torch.no_grad()
            def update(self, model):
                source = model.state_dict()
                for key, value in self.shadow.state_dict().items():
                    if value.dtype.is_floating_point:
                        value.mul_(0.9).add_(source[key], alpha=0.1)
                    else:
                        value.copy_(source[key])

        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        average = Average(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(6, 3)).pow(2).mean().backward()
            optimizer.step()
            average.update(model)
        average.shadow.eval()
        print(average.shadow(torch.ones(1, 3)))
    """)


def test_a_state_that_functions_change_and_give_back_is_left_alone() -> None:
    check("""
        class Tracker:
            def __init__(self):
                self.net = nn.Linear(3, 2)

            def suppress(self, masks, rows):
                masks[rows] = -10.0
                return masks

            def plan(self, masks):
                if masks.size(0) > 0:
                    masks = self.suppress(masks=masks, rows=torch.tensor([0]))
                return masks.sum()

            def track(self, x):
                masks = self.net(x).detach()
                plan = self.plan(masks=masks)
                return plan + masks.mean()

        Tracker().track(torch.randn(4, 3))
    """)
