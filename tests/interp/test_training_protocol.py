"""The training loop: clearing, stepping, and what the optimizer holds; each hazard beside its safe twin."""

from __future__ import annotations

from tests.interp.checking import check


def test_a_trainer_that_never_clears_is_reported() -> None:
    check("""
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
            def train_step(self, x, y):
                loss = F.cross_entropy(self.model(x), y)
                loss.backward()  # GS501
                self.opt.step()
                return loss.item()
        t = Trainer(nn.Linear(4, 2))
        for _ in range(5):
            t.train_step(torch.randn(8, 4), torch.randint(0, 2, (8,)))
    """)


def test_clearing_only_one_of_two_models_is_reported() -> None:
    check("""
        a, b = nn.Linear(4, 2), nn.Linear(4, 2)
        oa = torch.optim.SGD(a.parameters(), lr=0.1)
        ob = torch.optim.SGD(b.parameters(), lr=0.1)
        for _ in range(5):
            oa.zero_grad()
            loss = a(torch.randn(8, 4)).pow(2).mean() + b(torch.randn(8, 4)).pow(2).mean()
            loss.backward()  # GS501
            oa.step()
            ob.step()
    """)


def test_updates_by_hand_through_data_without_clearing_are_reported() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        b = torch.zeros(1, requires_grad=True)
        x, y = torch.randn(20, 3), torch.randn(20)
        for _ in range(10):
            loss = ((x @ w + b - y) ** 2).mean()
            loss.backward()  # GS501
            w.data -= 0.01 * w.grad
            b.data -= 0.01 * b.grad
    """)


def test_updates_by_hand_of_all_parameters_without_clearing_are_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        for _ in range(10):
            loss = net(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # GS501
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.01 * p.grad
    """)


def test_updates_by_hand_that_drop_the_gradient_are_left_alone() -> None:
    check("""
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        for _ in range(10):
            loss = net(torch.randn(8, 3)).pow(2).mean()
            loss.backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.01 * p.grad
                    p.grad = None
    """)


def test_updates_by_hand_that_zero_first_are_left_alone() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        x, y = torch.randn(20, 3), torch.randn(20)
        for _ in range(10):
            if w.grad is not None:
                w.grad.zero_()
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                w.add_(w.grad, alpha=-0.1)
    """)


def test_a_new_leaf_in_every_round_has_nothing_to_clear() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        x, y = torch.randn(20, 3), torch.randn(20)
        for _ in range(10):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            w = (w - 0.1 * w.grad).detach().requires_grad_(True)
    """)


def test_updates_by_hand_after_zero_grad_of_the_module_are_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        for _ in range(10):
            net.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            with torch.no_grad():
                for p in net.parameters():
                    p.sub_(0.1 * p.grad)
    """)


def test_an_optimizer_written_by_hand_is_left_alone() -> None:
    check("""
        class MySGD:
            def __init__(self, params, lr):
                self.params, self.lr = list(params), lr
            def step(self):
                for p in self.params:
                    p.data -= self.lr * p.grad
            def zero_grad(self):
                for p in self.params:
                    if p.grad is not None:
                        p.grad.zero_()
        net = nn.Linear(3, 1)
        opt = MySGD(net.parameters(), 0.1)
        for _ in range(10):
            opt.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """)


def test_an_optimizer_written_by_hand_whose_zero_grad_is_not_called_is_reported() -> None:
    check("""
        class MySGD:
            def __init__(self, params, lr):
                self.params, self.lr = list(params), lr
            def step(self):
                for p in self.params:
                    p.data -= self.lr * p.grad
            def zero_grad(self):
                for p in self.params:
                    if p.grad is not None:
                        p.grad.zero_()
        net = nn.Linear(3, 1)
        opt = MySGD(net.parameters(), 0.1)
        for _ in range(10):
            net(torch.randn(8, 3)).pow(2).mean().backward()  # GS501
            opt.step()
    """)


def test_an_input_moved_by_an_accumulating_gradient_is_reported() -> None:
    check("""
        model = nn.Linear(4, 2)
        x = torch.randn(1, 4, requires_grad=True)
        for _ in range(5):
            F.cross_entropy(model(x), torch.tensor([1])).backward()  # GS501
            with torch.no_grad():
                x += 0.01 * x.grad.sign()
    """)


def test_an_input_moved_by_a_cleared_gradient_is_left_alone() -> None:
    check("""
        model = nn.Linear(4, 2)
        x = torch.randn(1, 4, requires_grad=True)
        for _ in range(5):
            F.cross_entropy(model(x), torch.tensor([1])).backward()
            with torch.no_grad():
                x += 0.01 * x.grad.sign()
                x.grad.zero_()
    """)


def test_clearing_once_per_epoch_is_reported() -> None:
    check("""
        model = nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())
        for epoch in range(3):
            optimizer.zero_grad()
            for _ in range(4):
                loss = F.cross_entropy(model(torch.randn(4, 3)), torch.randint(0, 2, (4,)))
                loss.backward()  # GS501
                optimizer.step()
    """)


def test_a_script_with_a_main_function_that_never_clears_is_reported() -> None:
    check("""
        import argparse
        def parse():
            p = argparse.ArgumentParser()
            p.add_argument("--epochs", type=int, default=2)
            p.add_argument("--clip", type=float, default=None)
            return p.parse_args([])
        def train_epoch(model, loader, opt, args):
            model.train()
            for x, y in loader:
                loss = F.cross_entropy(model(x), y)
                loss.backward()  # GS501
                if args.clip:
                    nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                opt.step()
        def main():
            args = parse()
            model = nn.Linear(4, 2)
            opt = torch.optim.Adam(model.parameters())
            loader = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(4)]
            for epoch in range(args.epochs):
                train_epoch(model, loader, opt, args)
        if __name__ == "__main__":
            main()
    """)


def test_a_training_generator_that_never_clears_is_reported() -> None:
    check("""
        def batches(n):
            for i in range(n):
                yield torch.randn(8, 4), torch.randint(0, 2, (8,))
        def train(model, opt):
            for x, y in batches(5):
                loss = F.cross_entropy(model(x), y)
                loss.backward()  # GS501
                opt.step()
                yield loss.item()
        model = nn.Linear(4, 2)
        for value in train(model, torch.optim.SGD(model.parameters(), lr=0.1)):
            print(value)
    """)


def test_a_training_generator_that_clears_is_left_alone() -> None:
    check("""
        def batches(n):
            for i in range(n):
                yield torch.randn(8, 4), torch.randint(0, 2, (8,))
        def train(model, opt):
            for x, y in batches(5):
                opt.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                opt.step()
                yield loss.item()
        model = nn.Linear(4, 2)
        for value in train(model, torch.optim.SGD(model.parameters(), lr=0.1)):
            print(value)
    """)


def test_clearing_the_model_between_backward_and_step_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(5):
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            loss.backward()
            net.zero_grad()  # GS502
            opt.step()
    """)


def test_zeroing_every_gradient_by_hand_before_the_step_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(5):
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            for p in net.parameters():
                p.grad.zero_()  # GS502
            opt.step()
    """)


def test_clearing_in_every_round_of_an_accumulation_is_reported() -> None:
    check("""
        from torch.utils.data import DataLoader, TensorDataset
        loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))), batch_size=8)
        net = nn.Linear(4, 2)
        opt = torch.optim.AdamW(net.parameters(), lr=0.1)
        for epoch in range(2):
            for step, (x, y) in enumerate(loader):
                opt.zero_grad()  # GS502
                loss = F.cross_entropy(net(x), y) / 4
                loss.backward()
                if (step + 1) % 4 == 0:
                    opt.step()
    """)


def test_gradients_left_by_the_other_loss_may_be_cleared() -> None:
    check("""
        G, D = nn.Linear(4, 2), nn.Linear(2, 1)
        og = torch.optim.Adam(G.parameters())
        od = torch.optim.Adam(D.parameters())
        for i in range(20):
            og.zero_grad()
            od.zero_grad()
            fake = G(torch.randn(8, 4))
            d_loss = D(fake).mean() - D(torch.randn(8, 2)).mean()
            d_loss.backward()
            od.step()
            if i % 5 == 0:
                og.zero_grad()
                g_loss = -D(G(torch.randn(8, 4))).mean()
                g_loss.backward()
                og.step()
    """)


def test_gradients_that_were_measured_may_be_cleared() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        norms = []
        for i in range(8):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            norms.append(net.weight.grad.norm().item())
            if i % 4 == 3:
                opt.step()
    """)


def test_skipping_a_bad_batch_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(8):
            opt.zero_grad()
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            if not torch.isfinite(norm):
                opt.zero_grad()
                continue
            opt.step()
    """)


def test_clearing_on_a_condition_of_its_own_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(8):
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            loss.backward()
            if torch.isnan(loss):
                opt.zero_grad()
            opt.step()
            opt.zero_grad()
    """)


def test_clearing_after_clipping_is_reported() -> None:
    check("""
        model = nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())
        def optimise(loss, *, clip=None):
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.zero_grad()  # GS502
            optimizer.step()
        for _ in range(3):
            optimise(F.cross_entropy(model(torch.randn(4, 3)), torch.randint(0, 2, (4,))), clip=1.0)
    """)


def test_clearing_too_early_in_a_base_class_is_reported() -> None:
    check("""
        class Base:
            def __init__(self, model):
                self.model = model
                self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
            def loss(self, x, y):
                raise RuntimeError("not differentiable")
            def step(self, x, y):
                loss = self.loss(x, y)
                loss.backward()
                self.opt.zero_grad()  # GS502
                self.opt.step()
                return float(loss)
        class Classifier(Base):
            def loss(self, x, y):
                return F.cross_entropy(self.model(x), y)
        c = Classifier(nn.Linear(4, 2))
        for _ in range(3):
            c.step(torch.randn(8, 4), torch.randint(0, 2, (8,)))
    """)


def test_a_step_that_no_backward_precedes_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            opt.step()  # GS503
            print(loss.item())
    """)


def test_an_optimizer_of_another_model_is_reported() -> None:
    check("""
        a, b = nn.Linear(4, 2), nn.Linear(4, 2)
        opt = torch.optim.SGD(b.parameters(), lr=0.1)  # GS512
        for _ in range(3):
            opt.zero_grad()
            a(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
    """)


def test_a_model_built_after_its_optimizer_is_reported() -> None:
    check("""
        def build():
            return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        model = build()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        model = build()  # GS504
        for _ in range(3):
            opt.zero_grad()
            model(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
    """)


def test_a_copy_made_before_its_optimizer_is_left_alone() -> None:
    check("""
        import copy
        base = nn.Linear(4, 2)
        model = copy.deepcopy(base)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            model(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
    """)


def test_a_parameter_that_is_assigned_anew_is_reported() -> None:
    check("""
        class Scale(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(3))
            def reset(self):
                self.w = nn.Parameter(torch.zeros(3))  # GS504
            def forward(self, x):
                return x * self.w
        m = Scale()
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m.reset()
        for _ in range(3):
            opt.zero_grad()
            m(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """)


def test_a_new_optimizer_takes_the_new_parameters() -> None:
    check("""
        m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
        m[2] = nn.Linear(8, 5)
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
    """)


def test_a_head_swapped_after_the_optimizer_is_reported() -> None:
    check("""
        m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m[2] = nn.Linear(8, 5)  # GS504
        for _ in range(2):
            opt.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
    """)


EVALUATED = """
def evaluate(model):
    model.eval()
    {back}

def fit(count):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(count):
        optimizer.zero_grad()
        model(torch.ones(3)).sum().backward()
        optimizer.step()
        evaluate(model)
"""


def test_a_switch_right_behind_a_step_comes_after_it() -> None:
    check(EVALUATED.format(back="").replace("model.eval()", "model.eval()  # GS505"))
    check(EVALUATED.format(back="model.train()"))
