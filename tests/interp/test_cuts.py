"""Where the graph ends: hazards and the stop-gradients that only look like them."""

from __future__ import annotations

import pytest

from tests.interp.checking import check


def test_a_list_of_losses_put_into_a_tensor_is_reported() -> None:
    check("""
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            losses = [net(torch.randn(8, 4)).pow(2).mean() for _ in range(3)]
            total = torch.tensor(losses, requires_grad=True).sum()  # GS206
            opt.zero_grad()
            total.backward()
            opt.step()
    """)


def test_numbers_for_the_record_are_left_alone() -> None:
    check("""
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        history = []
        for _ in range(3):
            loss = net(torch.randn(8, 4)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            history.append(loss.item())
        print(torch.tensor(history).mean())
    """)


def test_a_regulariser_of_numbers_is_reported() -> None:
    check("""
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            out = net(torch.randn(8, 4))
            main = out.pow(2).mean()
            reg = sum(p.abs().sum().item() for p in net.parameters())  # GS202
            loss = main + 0.01 * reg
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_float_of_a_term_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            x, y = torch.randn(5, 3), torch.randint(0, 2, (5,))
            ce = F.cross_entropy(net(x), y)
            l2 = sum(float(p.pow(2).sum()) for p in net.parameters())  # GS202
            loss = ce + 1e-3 * l2
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_number_as_weight_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            a = net(torch.randn(8, 4)).pow(2).mean()
            b = net(torch.randn(8, 4)).abs().mean()
            loss = a + b * (a.item() / (b.item() + 1e-8))
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_running_average_of_earlier_rounds_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        baseline = 0.0
        for _ in range(3):
            r = net(torch.randn(8, 4)).mean()
            baseline = 0.9 * baseline + 0.1 * r.item()
            loss = -(r - baseline)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_detached_code_is_reported() -> None:
    check("""
        enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(3):
            x = torch.randn(8, 4)
            z = enc(x).detach()  # GS203
            loss = F.mse_loss(dec(z), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_detach_inside_a_method_is_reported() -> None:
    check("""
        class AE(nn.Module):
            def __init__(self):
                super().__init__()
                self.e, self.d = nn.Linear(6, 3), nn.Linear(3, 6)
            def encode(self, x):
                return torch.relu(self.e(x)).detach()  # GS203
            def forward(self, x):
                return self.d(self.encode(x))
        ae = AE()
        opt = torch.optim.Adam(ae.parameters())
        for _ in range(2):
            x = torch.randn(8, 6)
            loss = F.mse_loss(ae(x), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_gate_taken_by_data_is_reported() -> None:
    check("""
        gate, body = nn.Linear(4, 4), nn.Linear(4, 4)
        opt = torch.optim.SGD([*gate.parameters(), *body.parameters()], lr=0.1)
        for _ in range(2):
            x = torch.randn(8, 4)
            g = torch.sigmoid(gate(x)).data  # GS203
            loss = (g * body(x)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_detached_term_is_reported() -> None:
    check("""
        pi = nn.Linear(4, 3)
        opt = torch.optim.Adam(pi.parameters())
        for _ in range(2):
            logits = pi(torch.randn(6, 4))
            d = torch.distributions.Categorical(logits=logits)
            a = d.sample()
            adv = torch.randn(6)
            entropy = d.entropy().mean().detach()  # GS203
            loss = -(d.log_prob(a) * adv).mean() - 0.01 * entropy
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_features_of_a_network_that_is_not_trained_are_left_alone() -> None:
    check("""
        enc, probe = nn.Linear(4, 3), nn.Linear(3, 2)
        opt = torch.optim.Adam(probe.parameters())
        for _ in range(3):
            z = enc(torch.randn(8, 4)).detach()
            loss = F.cross_entropy(probe(z), torch.randint(0, 2, (8,)))
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_decorated_forward_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        @torch.no_grad()  # GS204
        def forward(x):
            return net(x)
        loss = F.cross_entropy(forward(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
    """)


def test_an_encoder_under_no_grad_is_reported() -> None:
    check("""
        enc, head = nn.Linear(4, 4), nn.Linear(4, 2)
        opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
        for _ in range(2):
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            with torch.no_grad():  # GS204
                h = enc(x)
            loss = F.cross_entropy(head(h), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_argmax_on_the_way_to_the_loss_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        y = torch.randint(0, 2, (8,))
        pred = net(torch.randn(8, 4)).argmax(1).float()  # GS205
        loss = F.mse_loss(pred, y.float())
        loss.backward()
    """)


def test_argmax_for_a_metric_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            y = torch.randint(0, 2, (8,))
            out = net(torch.randn(8, 4))
            acc = (out.argmax(1) == y).float().mean()
            loss = F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(acc.item())
    """)


def test_a_list_round_trip_with_requires_grad_is_reported() -> None:
    check("""
        enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(2):
            x = torch.randn(6, 4)
            z = enc(x)
            z = torch.tensor(z.tolist(), requires_grad=True)  # GS206
            loss = F.mse_loss(dec(z), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_requires_grad_on_data_is_reported() -> None:
    check("""
        enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(2):
            x = torch.randn(6, 4)
            z = enc(x).data.requires_grad_()  # GS206
            loss = F.mse_loss(dec(z), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_leaf_made_of_an_input_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        x = torch.randn(8, 4)
        adv = x.detach().clone().requires_grad_(True)
        F.cross_entropy(net(adv), torch.randint(0, 2, (8,))).backward()
        print(adv.grad.abs().mean())
    """)


def test_a_parameter_made_of_a_product_is_reported() -> None:
    check("""
        class Adaptive(nn.Module):
            def __init__(self):
                super().__init__()
                self.base = nn.Linear(3, 3)
                self.scale = nn.Parameter(torch.ones(3))
            def forward(self, x):
                w = nn.Parameter(self.base.weight * self.scale)  # GS207
                return F.linear(x, w, self.base.bias)
        m = Adaptive()
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m(torch.randn(4, 3)).pow(2).mean().backward()
        opt.step()
    """)


def test_a_parameter_remade_in_forward_is_reported_once() -> None:
    check("""
        class LowRank(nn.Module):
            def __init__(self):
                super().__init__()
                self.u, self.v = nn.Parameter(torch.randn(4, 2)), nn.Parameter(torch.randn(2, 4))
            def forward(self, x):
                self.w = nn.Parameter(self.u @ self.v)  # GS207
                return x @ self.w
        m = LowRank()
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m(torch.randn(3, 4)).pow(2).mean().backward()
        opt.step()
    """)


def test_rounding_is_reported() -> None:
    check("""
        net = nn.Linear(4, 4)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            z = net(torch.randn(8, 4))
            q = torch.round(z * 8) / 8  # GS208
            loss = q.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_straight_through_estimator_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 4)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            z = net(torch.randn(8, 4))
            q = z + ((z * 8).round() / 8 - z).detach()
            loss = q.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_dropped_clamp_is_reported() -> None:
    check("""
        x = torch.randn(3, requires_grad=True)
        y = x * 2
        y.clamp(0)  # GS209
        y.sum().backward()
    """)


def test_a_dropped_detach_is_reported() -> None:
    check("""
        x = torch.randn(3)
        w = torch.randn(3, requires_grad=True)
        y = w * x
        y.detach()  # GS209
        y.sum().backward()
    """)


def test_methods_that_work_in_place_are_left_alone() -> None:
    check("""
        x = torch.randn(3)
        x.mul_(2)
        x.requires_grad_()
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: None)
        y.sum().backward()
    """)


def test_grad_mode_left_off_is_reported_where_it_is_switched() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
            torch.set_grad_enabled(False)  # GS210
            print(net(torch.randn(8, 4)).mean())
    """)


def test_a_mode_that_each_phase_sets_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def run(train):
            torch.set_grad_enabled(train)
            loss = net(torch.randn(8, 4)).pow(2).mean()
            if train:
                opt.zero_grad()
                loss.backward()
                opt.step()
            return loss.item()
        for epoch in range(3):
            run(True)
            run(False)
    """)


def test_a_mode_as_context_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for phase in ["train", "val"]:
                net.train(phase == "train")
                opt.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = net(torch.randn(8, 4)).pow(2).mean()
                    if phase == "train":
                        loss.backward()
                        opt.step()
    """)


def test_a_script_that_only_predicts_is_left_alone() -> None:
    check("""
        torch.set_grad_enabled(False)
        net = nn.Linear(4, 2).eval()
        def predict(x):
            return net(x).softmax(-1)
        print(predict(torch.randn(1, 4)))
    """)


def test_a_mode_that_is_restored_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        def evaluate(x):
            prev = torch.is_grad_enabled()
            torch.set_grad_enabled(False)
            out = net(x).mean().item()
            torch.set_grad_enabled(prev)
            return out
        evaluate(torch.randn(3, 4))
        net(torch.randn(3, 4)).mean().backward()
    """)


def test_a_target_of_the_network_that_is_stepped_is_reported() -> None:
    check("""
        q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.Adam(q.parameters())
        for _ in range(3):
            s, a, r, s2 = torch.randn(8, 4), torch.randint(0, 2, (8,)), torch.rand(8), torch.randn(8, 4)
            q_target = r + 0.9 * q(s2).max(1).values
            q_pred = q(s).gather(1, a[:, None]).squeeze(1)
            loss = (q_pred - q_target).pow(2).mean()  # GS290
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_two_branches_of_one_network_are_left_alone() -> None:
    check("""
        net = nn.Linear(4, 3)
        opt = torch.optim.Adam(net.parameters())
        for _ in range(3):
            a, b = net(torch.randn(8, 4)), net(torch.randn(8, 4))
            loss = F.mse_loss(a, b) + F.relu(1 - a.std(0)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


@pytest.mark.parametrize(("last", "loss"), [(".log_softmax(-1)", "nll_loss"), ("", "cross_entropy")])
def test_a_target_that_nobody_knows_names_classes(last: str, loss: str) -> None:
    program = f"""
        def train(net: nn.Module, batches, graph):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x in batches:
                optimizer.zero_grad()
                out = net(x){last}
                loss = F.{loss}(LOSS
                loss.backward()
                optimizer.step()
    """
    check(program.replace("LOSS", "out.detach(), graph.labels[graph.chosen])  # GS203"))
    check(program.replace("LOSS", "out, graph.labels[graph.chosen])"))


def test_a_target_that_a_network_computes_brings_its_graph() -> None:
    check("""
        def train(student: nn.Module, teacher: nn.Module, batches):
            optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
            for x in batches:
                optimizer.zero_grad()
                loss = F.cross_entropy(student(x).detach(), teacher(x).softmax(-1))
                loss.backward()
                optimizer.step()
    """)
