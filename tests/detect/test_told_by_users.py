"""Silent faults that users told of: each hazard on its line, and the right program beside it silent."""

from __future__ import annotations

from tests.detect.test_reported_families import check

CENTERS = """
class Centers(nn.Module):
    def __init__(self):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(4, 2))

    def forward(self, features, labels):
        return (features - self.centers[labels]).pow(2).mean()


net, centers = nn.Linear(3, 2), Centers()
optimizer = torch.optim.SGD({held}, lr=0.1)
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    features = net(x)
    loss = features.square().mean() + centers(features, torch.randint(0, 4, (5,)))
    loss.backward()
    optimizer.step()
"""


def test_parameters_of_a_loss_that_no_optimizer_holds() -> None:
    check(CENTERS.replace("{held}", "net.parameters()"), ("GS512", "optimizer ="))
    check(CENTERS.replace("{held}", "[*net.parameters(), *centers.parameters()]"))


SCORED = """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.layer = nn.Linear(2, 1)

    def forward(self, action):
        return self.scale * self.layer(action)


actor, critic = nn.Linear(3, 2), Critic()
optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    (-critic(actor(x)).mean()).backward()
    optimizer.step()
"""


def test_a_critic_that_only_scores_stays_as_it_is() -> None:
    check(SCORED)


SHORT = """
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for number, x in enumerate(torch.randn({batches}, 4, 3), 1):
    net(x).square().mean().backward()
    if number % {every} == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


def test_a_loop_that_is_too_short_for_its_step() -> None:
    check(SHORT.replace("{batches}", "5").replace("{every}", "8"), ("GS512", "optimizer ="))
    check(SHORT.replace("{batches}", "5").replace("{every}", "4"))
    check(SHORT.replace("{batches}", "100").replace("{every}", "64"))


BEST = """
import copy

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
best, best_net = float("inf"), net
for x in torch.randn(4, 5, 3):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < best:
        best, best_net = loss.item(), {kept}
print(best_net(torch.ones(1, 3)))
"""


def test_a_best_model_that_begins_as_the_model_and_becomes_a_copy() -> None:
    check(
        BEST.replace("{kept}", "net"), ("GS514", "best, best_net = float"), ("GS514", "best, best_net = loss")
    )
    check(BEST.replace("{kept}", "copy.deepcopy(net)"))


NORMS = """
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def freeze(module):
    if isinstance(module, nn.BatchNorm1d):
        module.eval()


net.apply(freeze)
for epoch in range(2):
    net.train()
    {after}
    for x in torch.randn(3, 5, 3):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
"""


def test_norm_layers_that_train_puts_back() -> None:
    check(NORMS.replace("{after}", "pass"), ("GS516", "net.train()"))
    check(NORMS.replace("{after}", "net.apply(freeze)"))


TEACHER = """
student, teacher = nn.Linear(3, 2), nn.Linear(3, 2)
teacher.eval()
optimizer = torch.optim.SGD([*student.parameters(), {held}], lr=0.1)
for x in torch.randn(3, 5, 3):
    out, guide = student(x), teacher(x)
    loss = nn.functional.mse_loss(out, guide)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_teacher_in_eval_mode_that_learns() -> None:
    check(TEACHER.replace("{held}", "*teacher.parameters()"), ("GS290", "loss ="))
    check(TEACHER.replace("{held}", ""))
    both = TEACHER.replace("{held}", "*teacher.parameters()").replace("teacher.eval()", "teacher.train()")
    check(both)


TIED = """
embed, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
{tie}
optimizer = torch.optim.Adam({held}, lr=0.1)
for words in torch.randint(0, 5, (3, 4)):
    optimizer.zero_grad()
    nn.functional.cross_entropy(head(embed(words)), words).backward()
    optimizer.step()
"""


def test_two_parameters_in_one_memory() -> None:
    both = "[*embed.parameters(), *head.parameters()]"
    by_data = "head.weight.data = embed.weight.data"
    check(TIED.replace("{tie}", by_data).replace("{held}", both), ("GS520", "head.weight.data"))
    check(TIED.replace("{tie}", "head.weight.data = embed.weight.data.clone()").replace("{held}", both))
    check(TIED.replace("{tie}", "head.weight = embed.weight").replace("{held}", "embed.parameters()"))


STATES = """
import copy

net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3), nn.BatchNorm1d(3))
average = copy.deepcopy(net).eval()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip({pairs}):
            slow.mul_(0.9).add_(fast, alpha=0.1)
average(torch.ones(1, 3))
"""


def test_an_average_over_whole_states() -> None:
    parameters = "average.parameters(), net.parameters()"
    check(STATES.replace("{pairs}", parameters), ("GS519", "slow.mul_"))
    states = "average.state_dict().values(), net.state_dict().values()"
    check(
        STATES.replace("{pairs}", states).replace("slow.mul_", "slow.dtype.is_floating_point and slow.mul_")
    )


BOOTSTRAP = """
net, slow = nn.Linear(3, 2), nn.Linear(3, 2).requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 3):
    values = net(x){cut}.max(1).values
    with torch.no_grad():
        wanted = 0.9 * net(x).max(1).values + slow(x).max(1).values
    loss = nn.functional.smooth_l1_loss(values, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_prediction_that_is_cut_is_blamed_and_its_constant_target_is_not() -> None:
    check(BOOTSTRAP.replace("{cut}", ".detach()"), ("GS203", "values ="))
    check(BOOTSTRAP.replace("{cut}", ""))


SWITCHED = """
class Game:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Linear(2, 1)
        self.for_actor = torch.optim.Adam(self.actor.parameters(), lr=0.1)
        self.for_critic = torch.optim.Adam(self.{whose}.parameters(), lr=0.1)

    def criticise(self, x):
        self.critic.requires_grad_(True)
        self.for_critic.zero_grad()
        with torch.no_grad():
            fake = self.actor(x)
        (self.critic(fake) - self.critic(x[:, :2])).mean().backward()
        self.for_critic.step()

    def act(self, x):
        self.critic.requires_grad_(False)
        self.for_actor.zero_grad()
        (-self.critic(self.actor(x)).mean()).backward()
        self.for_actor.step()


game = Game()
for x in torch.randn(3, 5, 3):
    game.criticise(x)
    game.act(x)
"""


def test_a_critic_that_rests_in_between_and_is_in_no_optimizer() -> None:
    check(SWITCHED.replace("{whose}", "actor"), ("GS512", "self.for_critic ="))
    check(SWITCHED.replace("{whose}", "critic"))


SCHEDULE = """
class Engine:
    def __init__(self, net):
        self.net, self.before, self.after = net, [], []
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)

    def run(self, batches):
        for _ in range(2):
            for call in self.before:
                call(self)
            for x in batches:
                self.optimizer.zero_grad()
                self.net(x).square().mean().backward()
                self.optimizer.step()
            for call in self.after:
                call(self)


def adjust(engine):
    engine.schedule.step()


engine = Engine(nn.Linear(3, 1))
engine.{when}.append(adjust)
engine.run(torch.randn(3, 5, 3))
"""


def test_a_schedule_that_a_list_of_calls_steps_first() -> None:
    check(SCHEDULE.replace("{when}", "before"), ("GS506", "engine.schedule.step()"))
    check(SCHEDULE.replace("{when}", "after"))


WOUND = """
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
for _ in range(4):
    schedule.step()
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
    schedule.step()
"""


def test_a_schedule_that_is_wound_forward_is_meant() -> None:
    check(WOUND)


ANCHOR = """
anchor = torch.ones(3)
{told}
weight = nn.Parameter(anchor{option})
optimizer = torch.optim.SGD([weight, nn.Parameter(torch.ones(3))], lr=0.1)
for x in torch.randn(3, 3):
    optimizer.zero_grad()
    ((weight + optimizer.param_groups[0]["params"][1]) * x).sum().backward()
    optimizer.step()
"""


def test_a_parameter_around_what_was_told_to_need_no_gradient() -> None:
    told = "anchor.requires_grad = False"
    check(ANCHOR.replace("{told}", told).replace("{option}", ""), ("GS516", "weight ="))
    check(ANCHOR.replace("{told}", told).replace("{option}", ", requires_grad=False"))
    check(ANCHOR.replace("{told}", "").replace("{option}", ""))


HOOKED = """
layer = nn.Linear(3, 1)
seen = []
{hook}
loss = layer.forward(torch.ones(1, 3)).sum()
loss.backward()
"""


def test_forward_of_a_module_with_hooks() -> None:
    hook = "layer.register_forward_hook(lambda module, args, out: seen.append(out.detach()))"
    check(HOOKED.replace("{hook}", hook), ("GS606", "loss ="))
    check(HOOKED.replace("{hook}", ""))
