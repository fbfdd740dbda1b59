"""What a program says about its own intention: helpers for inference, options, hidden parts, whole numbers, answers."""

from __future__ import annotations

from tests.interp.checking import check


def test_a_helper_that_is_called_only_without_grad_mode_may_write() -> None:
    guarded = """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3)
    def forward(self, x):
        x = self.conv(x)
        if x.device.type == "cpu" and not torch.is_grad_enabled():
            return self.fast(x)
        return x * 2
    def fast(self, x: torch.Tensor):
        out = x.new_empty(x.shape)
        torch.mul(x, 2.0, out=out)
        return out
"""
    check(guarded)
    check(guarded.replace(" and not torch.is_grad_enabled()", "").replace("out=out)", "out=out)  # GS108"))


def test_a_guard_may_be_a_function_of_its_own() -> None:
    guarded = """
def may_hurry(first, second):
    return first.is_contiguous() and not (torch.is_grad_enabled() and (first.requires_grad or second.requires_grad))
def hurried(first: torch.Tensor, second: torch.Tensor):
    mean = first.exp()
    product = mean * second
    square = mean.pow_(2)
    return product + square
class Measure(nn.Module):
    def forward(self, first, second):
        if may_hurry(first, second):
            return hurried(first, second)
        return first * second
"""
    check(guarded)
    check(
        guarded.replace("if may_hurry(first, second)", "if first.is_contiguous()").replace(
            "pow_(2)", "pow_(2)  # GS101"
        )
    )


def test_the_shape_of_an_unknown_value_brings_no_graph() -> None:
    text = """
from elsewhere import paint
class Boxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
    def forward(self, x):
        box = torch.ones(1, 4)
        image = paint(self.first(x))
        box[:, 0::2] = box[:, 0::2].clamp(0, image.shape[-1] - 1)
        box[:, 1::2] = box[:, 1::2].clamp(0, image.size(-1))
        return paint(image, box)
"""
    check(text)
    check(
        text.replace("torch.ones(1, 4)", "self.first(x)")
        .replace("shape[-1] - 1)", "shape[-1] - 1)  # GS101")
        .replace("size(-1))", "size(-1))  # GS101")
    )


def test_a_value_that_is_made_a_whole_number_is_counted_with() -> None:
    text = """
class Blur(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Linear(4, 1)
    def forward(self, x):
        size = int(self.factor(x).mean().item())
        return x * size
"""
    check(text)
    check(text.replace("int(self.factor(x).mean().item())", "self.factor(x).mean().item()  # GS202"))


def test_a_list_for_one_module_keeps_it_from_view() -> None:
    text = """
def large():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU())
class Student(nn.Module):
    def __init__(self):
        super().__init__()
        teacher = large().eval()
        self.own = nn.Linear(4, 4)
        self.teacher = [teacher]
    def forward(self, x):
        with torch.no_grad():
            y = self.teacher[0](x)
        return self.own(x) - y
"""
    check(text)
    check(text.replace("[teacher]\n", "[teacher, large()]  # GS601\n"))


def test_parts_that_are_registered_elsewhere_may_stand_in_a_list() -> None:
    check(
        """
class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(x) * 2
class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.members = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.wrapped = []
        for member in self.members:
            self.wrapped.append(Wrapped(member))
    def forward(self, x):
        return sum(one(x) for one in self.wrapped)
"""
    )
    check(
        """
class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.wrapped = []  # GS601
        for _ in range(2):
            self.wrapped.append(nn.Linear(4, 4))
    def forward(self, x):
        return sum(one(x) for one in self.wrapped)
"""
    )


FEATURES = """
def features(model, x, frozen=True):
    if frozen:
        with torch.no_grad():
            out = model(x)
    else:
        out = model(x)
    return out
base, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*base.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    head(features(base, torch.ones(2, 4))).mean().backward()
    optimizer.step()
"""


def test_an_argument_that_decides_on_grad_mode_is_an_option() -> None:
    check(FEATURES)
    check(
        FEATURES.replace("    if frozen:\n        with torch.no_grad():\n            out", "    with torch.no_grad():  # GS204\n        out")
        .replace("    else:\n        out = model(x)\n", "")
    )  # fmt: skip


def test_a_function_that_returns_nothing_is_there_to_write() -> None:
    check(
        """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 4)
    def predict(self, x, beam):
        h, c = torch.zeros(6, 4), torch.zeros(6, 4)
        def reorder(states, place, positions):
            for state in states:
                rows, width = state.size()
                part = state.contiguous().view(beam, rows // beam, width)[:, place]
                part.data.copy_(part.data.index_select(0, positions))
        out = []
        for _ in range(5):
            h, c = self.cell(x, (h, c))
            out.append(h)
            for place in range(2):
                reorder((h, c), place, torch.tensor([0, 1, 2]))
        return torch.stack(out)
print(Decoder().eval().predict(torch.ones(6, 4), 3))
"""
    )


def test_the_answer_of_an_unknown_model_can_be_made_an_array() -> None:
    text = """
class Wrapper:
    def __init__(self, model, tokenizer):
        self.model, self.tokenizer = model, tokenizer
    def train(self, data):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        seen = []
        for batch in data:
            optimizer.zero_grad()
            found = self.model.generate(self.tokenizer(batch), beams=3)
            seen.extend(found.cpu().numpy())
            self.model(self.tokenizer(batch)).mean().backward()
            optimizer.step()
"""
    check(text)
    check(text.replace(".generate(", "(").replace("numpy())", "numpy())  # GS202"))


def test_a_sparse_matrix_is_no_tensor() -> None:
    check(
        """
from elsewhere import Elastic, Recommender
class Neighbours(Recommender):
    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.hides = config["hides"]
        self.factor = nn.Parameter(torch.zeros(1))
        table = dataset.matrix(form="csr").astype("float32")
        table = table.tolil()
        self.matrix = table
        model = Elastic()
        kept = []
        for place in range(table.shape[1]):
            column = table[:, place]
            if self.hides:
                table[:, place] = 0
            model.fit(table, column.todense().getA1())
            kept.append(model.coefficients)
            if self.hides:
                table[:, place] = column
        self.kept = kept
    def calculate_loss(self, interaction):
        return self.factor
"""
    )


def test_a_part_that_learns_nothing_may_stay_in_eval_mode() -> None:
    text = """
class Whole(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.head = base, nn.Linear(4, 1)
    def forward(self, x):
        with torch.no_grad():
            h = self.base(x)
        return self.head(h)
base = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
whole = Whole(base)
base.eval()
optimizer = torch.optim.SGD(whole.head.parameters(), lr=0.1)
optimizer.add_param_group({"params": list(base.parameters())})
for _ in range(3):
    optimizer.zero_grad()
    whole(torch.ones(2, 4)).mean().backward()
    optimizer.step()
"""
    check(text.replace("torch.no_grad():", "torch.no_grad():  # GS204"))


def test_a_call_for_its_effect_may_write_a_graph_into_what_has_none() -> None:
    check(
        """
from elsewhere import make_strategy
def compare():
    strategy = make_strategy("tiles")
    x = torch.randn(3).requires_grad_(True)
    out = torch.zeros_like(x)
    strategy.reduce(out, [x * 2])
    loss = out.square().sum()
    loss.backward()
"""
    )
    check(
        """
def compare():
    x = torch.randn(3).requires_grad_(True)
    out = torch.zeros_like(x)
    loss = out.square().sum()
    loss.backward()  # GS205
"""
    )


def test_the_same_question_about_a_count_has_the_same_answer() -> None:
    text = """
def train(model, optimizer, data, every):
    for place in range(every):
        loss = model(data[place]).mean()
        if (place + 1) % every == 0 or place == every - 1:
            optimizer.zero_grad()
        loss.backward()
        if (place + 1) % every == 0 or place == every - 1:
            optimizer.step()
"""
    check(text)
    check(
        text.replace("optimizer.zero_grad()", "pass").replace("loss.backward()", "loss.backward()  # GS501")
    )


def test_a_function_that_computes_targets_may_copy_them() -> None:
    text = """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
    def compute_returns(self, rewards, last_state: torch.Tensor):
        total = self.net(last_state).mean()
        kept = []
        for reward in rewards:
            total = reward + 0.9 * total
            kept.append(total)
        return torch.tensor(kept[::-1])
"""
    check(text)
    check(text.replace("compute_returns", "sums").replace("kept[::-1])", "kept[::-1])  # GS201"))


CHOSEN = """
class Head(nn.Module):
    def __init__(self, learn=False):
        super().__init__()
        self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 2)
        self.learn = learn

    def forward(self, x):
        features = self.body(x)
        features = HOW
        return self.head(features)

net = Head()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(2, 2)).sum().backward()
    opt.step()
"""
TEMPERATURE = """
log_alpha = nn.Parameter(torch.zeros(1))
net = nn.Linear(2, 2)
opt = torch.optim.SGD([*net.parameters(), log_alpha], lr=0.1)

def alpha()HOW:
    return log_alpha.exp().item()WHAT

for _ in range(3):
    opt.zero_grad()
    loss = net(torch.randn(2, 2)).mean() + alpha()
    loss.backward()
    opt.step()
"""
LAGGED = """
class Agent:
    def __init__(self, lagged):
        self.critic = nn.Linear(2, 2)
        self.opt = torch.optim.SGD(self.critic.parameters(), lr=0.1)
        if lagged:
            self.critic_old = OTHERWISE
        else:
            self.critic_old = self.critic  # GS514

    def update(self, x):
        with torch.no_grad():
            target = self.critic_old(x)
        self.opt.zero_grad()
        F.mse_loss(self.critic(x), target).backward()
        self.opt.step()

agent = Agent(OPTION)
for _ in range(3):
    agent.update(torch.randn(2, 2))
"""


def test_cut_that_an_option_chooses_is_meant() -> None:
    check(CHOSEN.replace("HOW", "features.detach()  # GS203"))
    check(CHOSEN.replace("HOW", "features if self.learn else features.detach()"))


def test_number_that_a_function_is_declared_to_return_is_meant() -> None:
    check(TEMPERATURE.replace("HOW", "").replace("WHAT", "  # GS202"))
    check(TEMPERATURE.replace("HOW", " -> float").replace("WHAT", ""))


def test_second_name_beside_a_copy_in_the_other_arm_is_meant() -> None:
    text = LAGGED.replace("OPTION", "False")
    check(text.replace("OTHERWISE", "None"))
    check(text.replace("OTHERWISE", "copy_of(self.critic)").replace("  # GS514", ""))


TWINS = """
from copy import deepcopy

class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Linear(2, 2)
        self.target = OTHER

    def forward(self, x):
        with torch.no_grad():HERE
            y = self.target(x)
        return -F.cosine_similarity(self.online(x), y).mean()

net = Twins()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(2, 2)).backward()
    opt.step()
"""


def test_deep_copy_that_is_applied_with_grad_mode_off_is_a_target() -> None:
    check(TWINS.replace("OTHER", "nn.Linear(2, 2)").replace("HERE", "  # GS204"))
    check(TWINS.replace("OTHER", "deepcopy(self.online)").replace("HERE", ""))
