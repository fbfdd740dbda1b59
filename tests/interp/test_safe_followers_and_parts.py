"""Right programs about networks that follow others, items that are counted, and objects that hold tensors, each beside a wrong one."""

from __future__ import annotations

from textwrap import dedent

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.checking import PREAMBLE, check

AGENT = """
class Agent:
    def __init__(self, args):
        self.online = nn.Linear(args.width, args.actions)
        self.other = nn.Linear(args.width, args.actions)
        self.other.load_state_dict(self.online.state_dict())
        self.held = list(self.online.parameters())
        if args.optimizer == "RMS":
            self.optimizer = torch.optim.RMSprop(self.held, lr=args.lr)

    def learn(self, batch, gamma):
        q = self.online(batch["o"])
        following = self.other(batch["next"]).max(dim=1)[0]
        wanted = batch["r"] + gamma * following
        loss = (q.max(dim=1)[0] - wanted.detach()).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
MOVED_BY_HAND = """
def difference(net, second, batch):
    wanted = batch["r"] + second(batch["next"])
    wanted = wanted.detach()HERE
    return (net(batch["now"]) - wanted).pow(2).mean()

def train(loader, net, second, optim_net, tau):
    for batch in loader:
        loss = difference(net, second, batch)
        optim_net.zero_grad()
        loss.backward()
        optim_net.step()
        MOVE
"""
FORCES = """
def train(model, loader, optimizer):
    for g, target in loader:
        g.pos = g.frac * 2
        g.pos.requires_grad_(True)
        energy = model(GIVEN)
        force = torch.autograd.grad(energy.sum(), g.pos, create_graph=True)[0]HERE
        loss = (force - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_an_optimizer_that_was_not_seen_being_made_is_not_for_what_follows() -> None:
    check(AGENT)
    cut = AGENT.replace("wanted.detach()", "wanted").replace('batch["o"])', 'batch["o"]).detach()  # GS203')
    check(cut)


def test_who_is_given_a_network_may_hand_back_what_it_computed() -> None:
    program = """
    from tools import Runner

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.values = nn.Linear(4, 2)

        def forward(self, x):
            return x.argmax(), {"q": self.values(x)}

    def learn(env, agent, optimizer):
        for t in range(100):
            transition = env.run(GIVEN)[0]
            wanted = agent.values(transition.state).max().detach()
            loss = (transition.reward + wanted - transition.q).pow(2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    agent = Agent()
    learn(Runner("cliff"), agent, torch.optim.SGD(agent.parameters(), lr=0.5))
    """
    check(program.replace("GIVEN", "agent, steps=1"))
    check(program.replace("GIVEN", "lambda x: agent(x), steps=1"))
    check(program.replace("GIVEN", "steps=1").replace("detach()", "detach()  # GS203"))


def test_what_is_copied_to_by_hand_is_none_of_what_an_unseen_optimizer_holds() -> None:
    program = MOVED_BY_HAND.replace(
        "MOVE",
        "for p, q in zip(net.parameters(), second.parameters()):\n            q.detach().copy_((1 - tau) * q.detach() + tau * p.detach())",
    )
    check(program.replace("HERE", ""))
    check(MOVED_BY_HAND.replace("MOVE", "second.train()").replace("HERE", "  # GS203"))


def test_a_model_may_use_the_tensors_of_an_object_that_it_is_given() -> None:
    check(FORCES.replace("GIVEN", "g").replace("HERE", ""))
    check(FORCES.replace("GIVEN", "g=g").replace("HERE", ""))
    check(FORCES.replace("GIVEN", "target").replace("HERE", "  # GS406"))


def test_the_gradients_of_parameters_are_constants_for_others() -> None:
    program = """
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.ones(4, 2, requires_grad=True)
    first = net(x).pow(2).mean()
    second = net(torch.zeros(4, 2)).pow(2).mean()
    WANTED
    penalty = sum((one - other).pow(2).sum() for one, other in zip(some, rest))
    optimizer.zero_grad()
    (first + penalty).backward()
    optimizer.step()
    """
    check(
        program.replace(
            "WANTED",
            "some = torch.autograd.grad(first, net.parameters(), create_graph=True)\n"
            "    rest = torch.autograd.grad(first + second, net.parameters(), retain_graph=True)",
        )
    )
    check("""
        net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        x = torch.ones(4, 2, requires_grad=True)
        u = net(x)
        first = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), x, retain_graph=True)[0]  # GS405
        (first - second).pow(2).mean().backward()
    """)


def test_rounds_that_are_counted_go_over_the_items_of_a_list() -> None:
    program = """
    class Domains(nn.Module):
        def __init__(self, width, domains):
            super().__init__()
            self.heads = [nn.Linear(width, 2) for i in range(domains)]
            self.optimizers = [torch.optim.SGD(self.heads[PLACE].parameters(), lr=0.1) for i in range(domains)]

        def update(self, batches):
            loss = 0.0
            for j, (x, y) in enumerate(batches):
                loss = loss + (self.heads[j](x) - y).pow(2).sum()
            for optimizer in self.optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in self.optimizers:
                optimizer.step()
    """
    check(program.replace("PLACE", "i"))
    assert_reported(program.replace("PLACE", "0"), "GS512")


def test_a_row_that_is_filled_from_the_places_of_another_repeats_nothing() -> None:
    program = """
    class Critic(nn.Module):
        def __init__(self, width, depth, parts):
            super().__init__()
            first = nn.Conv2d(width, width, 4)
            rows = [[first, nn.LeakyReLU(0.2)]]
            for n in range(1, depth):
                rows += [[nn.Conv2d(width, width, 4), nn.LeakyReLU(0.2)]]
            row = []
            for n in range(len(rows)):
                row += PART
            self.model = nn.Sequential(*row)HERE

        def forward(self, x):
            return self.model(x)

    class Several(nn.Module):
        def __init__(self, width, depth, count):
            super().__init__()
            for i in range(count):
                setattr(self, "critic" + str(i), Critic(width, depth, False))

        def forward(self, x):
            return self.critic0(x)

    def define(width, depth, count):
        return Several(width, depth, count)
    """
    check(program.replace("PART", "rows[n]").replace("HERE", ""))
    check("""
        def make(width):
            layer = nn.Linear(width, width)
            row = []
            for _ in range(4):
                row += [layer]
            return nn.Sequential(*row)  # GS608
    """)


def test_what_the_program_finds_out_not_to_be_a_module_is_none() -> None:
    check("""
        from torch.nn import Module, Parameter

        def freeze(part):
            if isinstance(part, Module):
                for one in part.parameters():
                    one.requires_grad = False
            elif isinstance(part, Parameter):
                part.requires_grad = False
    """)
    check("""
        from torch.nn import Module

        def freeze(part):
            if isinstance(part, Module):
                for one in part.parameters():
                    one.grad = None
                part.requires_grad = False  # GS602
    """)


def assert_reported(program: str, code: str) -> None:
    """A program gets a finding of this rule, wherever it stands."""
    report = analyze(Source("program.py", PREAMBLE + dedent(program)))
    assert code in {finding.code for finding in report.findings}


def test_a_row_that_a_condition_shares_or_copies_is_shared_on_purpose() -> None:
    program = """
    import copy

    class Heads(nn.Module):
        def __init__(self, transformer, share=True):
            super().__init__()
            head = nn.Linear(4, 2)
            if share:
                row = [head for i in range(transformer.layers)]
            else:
                row = OTHER
            self.heads = nn.ModuleList(row)HERE

        def forward(self, xs):
            return [head(x) for head, x in zip(self.heads, xs)]

    class Transformer(nn.Module):
        def __init__(self, layers):
            super().__init__()
            self.layers = layers

    def build(args):
        return Heads(Transformer(6), args.share)

    build(object())
    """
    check(program.replace("OTHER", "[copy.deepcopy(head) for i in range(6)]").replace("HERE", ""))
    check(program.replace("OTHER", "[head for i in range(3)]").replace("HERE", "  # GS608"))


def test_an_item_at_a_place_that_nobody_knows_may_be_a_view() -> None:
    program = """
    class Places(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        def find(self, n):
            places = torch.empty(3, 7, 5, dtype=torch.int64)
            for b in range(3):
                for i in range(self.k, n):
                    places[b][WHERE].copy_(torch.arange(5))HERE
            return places
    """
    check(program.replace("WHERE", "i - self.k").replace("HERE", ""))
    check("""
        table, rows = torch.ones(5, 2), torch.tensor([0, 2])
        table[rows].mul_(0.9)  # GS209
        print(table)
    """)


def test_the_node_of_a_graph_is_no_tensor() -> None:
    program = """
    def cache(root, settings, clear):
        res = root
        if settings.detach.on():
            res = res.detach()
        if res.grad_fn is not None:
            res.grad_fn.register_hook(clear)
        return res
    """
    check(program)
    check("""
        def watch(x, print):
            y = x.detach()
            y.register_hook(print)  # GS307
            return y
    """)


def test_rounds_are_never_below_zero() -> None:
    program = """
    class Attention(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.mix = nn.Linear(dim, dim)

        def forward(self, x, hooked=False):
            attention = self.mix(x).softmax(dim=-1)
            if hooked:
                attention.register_hook(print)HERE
            return attention * x

    class Encoder(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.blocks = nn.ModuleList([Attention(dim) for i in range(40)])

        def forward(self, x, hooked_at=AT):
            for i, block in enumerate(self.blocks):
                x = block(x, hooked_at == i)
            return x

    encoder = Encoder(4)
    with torch.no_grad():
        encoder(torch.ones(1, 4))
    """
    check(program.replace("AT", "-1").replace("HERE", ""))
    check(program.replace("AT", "1").replace("HERE", "  # GS307"))


def test_a_closure_is_called_with_grad_mode_on() -> None:
    program = """
    scale = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.LBFGS([scale], lr=0.1, max_iter=10)

    def closure():
        optimizer.zero_grad()
        loss = (scale * torch.ones(3)).pow(2).sum()
        loss.backward()
        return loss.detach()

    @torch.no_grad()HERE
    def calibrate():
        CALL

    calibrate()
    """
    check(program.replace("CALL", "optimizer.step(closure)").replace("HERE", ""))
    check(program.replace("CALL", "closure()").replace("HERE", "  # GS204"))


def test_what_fills_a_tensor_writes_that_alone() -> None:
    program = """
    with torch.no_grad():
        total, scale = torch.ones(3), torch.full((3,), 2.0)
        step = scale
        torch.div(total, DIVISOR, out=FILLED)HERE
        print(step.sum())
    """
    check(program.replace("DIVISOR", "scale").replace("FILLED", "step").replace("HERE", ""))
    check(program.replace("DIVISOR", "2").replace("FILLED", "scale").replace("HERE", "  # GS107"))


def test_a_method_that_is_given_more_than_that_of_a_tensor_takes_is_of_something_else() -> None:
    program = """
    def evaluate(model, dataset, optimizer):
        for x, y in dataset["loader"]:
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            dataset["logger"].log(GIVEN)HERE
    """
    check(program.replace("GIVEN", "{'loss': loss.item()}").replace("HERE", ""))
    check(program.replace("GIVEN", "").replace("HERE", "  # GS209"))


def test_a_step_that_is_given_gradients_is_that_of_the_programs_own_optimizer() -> None:
    program = """
    class Scaled(torch.optim.SGD):
        def step(self, closure=None, grads=None):
            for group in self.param_groups:
                for p, grad in zip(group["params"], grads or [p.grad for p in group["params"]]):
                    p.data.add_(grad, alpha=-0.1)

    weights = [nn.Parameter(torch.ones(3))]
    optimizer = KIND(weights, lr=0.1)
    for _ in range(3):
        optimizer.step(GIVEN)HERE
    """
    check(program.replace("KIND", "Scaled").replace("GIVEN", "grads=[torch.ones(3)]").replace("HERE", ""))
    check(program.replace("KIND", "torch.optim.SGD").replace("GIVEN", "").replace("HERE", "  # GS503"))


def test_what_was_collected_by_code_of_the_program_may_have_a_graph() -> None:
    program = """
    from tools import Runner

    agent = nn.Linear(4, 2)
    env = Runner("cliff")
    act = lambda state: agent(state)
    optimizer = torch.optim.SGD(agent.parameters(), lr=0.5)
    for t in range(100):
        replay = env.run(GIVEN, 5)
        following = agent(replay[-1].next_state).detach()
        advantage = replay.reward() + following - replay.value().detach()
        loss = (replay.value() - advantage).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    check(program.replace("GIVEN", "act"))
    report = analyze(Source("program.py", PREAMBLE + dedent(program.replace("GIVEN", "3"))))
    assert "GS203" in {finding.code for finding in report.findings}


def test_a_model_that_is_frozen_inside_of_long_loops_is_frozen_as_a_whole() -> None:
    program = """
    class Features(nn.Module):
        def __init__(self, requires_grad=False):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(12)])
            for param in self.parameters():
                param.FREEZE

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    def statistics(files):
        model = Features()
        found = []
        for batch in torch.split(files, 50, dim=0):
            found.append(model(batch).numpy())HERE
        return found

    class Trainer:
        def __init__(self, model):
            self.model = model

        def evaluate(self, n):
            fake = []
            for i in range(n):
                with torch.no_grad():
                    fake.append(self.model(torch.ones(2, 4)))
            return statistics(torch.cat(fake, dim=0))

    trainer = Trainer(nn.Linear(4, 4))
    for epoch in range(1000):
        for batch in range(1000):
            for k in range(3):
                print(trainer.evaluate(20))
    """
    check(program.replace("FREEZE", "requires_grad = requires_grad").replace("HERE", ""))
    check(program.replace("FREEZE", "requires_grad_(False)").replace("HERE", ""))
    check(program.replace("FREEZE", "requires_grad_(True)").replace("HERE", "  # GS202"))


def test_two_networks_that_are_applied_alike_are_not_both_of_the_only_class() -> None:
    program = """
    class Frozen(nn.Module):
        def __init__(self, body):
            super().__init__()
            self.body = body
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            with torch.no_grad():
                h = self.body(x)HERE
            return OUT

    class Gan:
        def __init__(self, GIVEN):
            self.g, self.d = g, d
            self.optimizer = torch.optim.Adam(self.g.parameters())
            self.later = torch.optim.Adam(self.d.parameters())

        def step(self, x):
            loss = F.softplus(-self.d(self.g(x))).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
    """
    check(program.replace("HERE", "").replace("OUT", "self.head(h)").replace("GIVEN", "g, d"))
    given = program.replace("OUT", "self.head(h).detach()").replace("GIVEN", "g: Frozen, d: Frozen")
    report = analyze(Source("program.py", PREAMBLE + dedent(given.replace("HERE", ""))))
    assert {"GS203", "GS204"} & {finding.code for finding in report.findings}


def test_a_product_with_zero_clears_a_gradient() -> None:
    program = """
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(3, 2)).pow(2).mean().backward()
        optimizer.step()
        net.weight.grad *= FACTOR
    """
    check(program.replace("FACTOR", "0"))
    check(program.replace("FACTOR", "0.5  # GS513"))
