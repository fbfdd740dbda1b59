"""What a training loop leaves switched: modes, schedules, scaled, foreign and frozen gradients."""

from __future__ import annotations

from tests.interp.checking import check


def test_validation_that_leaves_eval_mode_on_is_reported() -> None:
    check("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.drop, self.out = nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2)
            def forward(self, x):
                return self.out(self.drop(torch.relu(self.fc(x))))
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def evaluate(model):
            model.eval()  # GS505
            with torch.no_grad():
                return model(torch.randn(8, 4)).argmax(1)
        for epoch in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
            evaluate(net)
    """)


def test_validation_that_restores_the_mode_is_left_alone() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def evaluate(model):
            was = model.training
            model.eval()
            with torch.no_grad():
                out = model(torch.randn(8, 4)).argmax(1)
            model.train(was)
            return out
        for epoch in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
            evaluate(net)
    """)


def test_train_called_once_before_the_loop_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net.train()
        for epoch in range(3):
            for _ in range(3):
                opt.zero_grad()
                F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
                opt.step()
            net.eval()  # GS505
            with torch.no_grad():
                val = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
    """)


def test_eval_mode_left_on_by_a_method_is_reported() -> None:
    check("""
        class Runner:
            def __init__(self):
                self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 2))
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
            def train_epoch(self):
                for _ in range(2):
                    self.opt.zero_grad()
                    F.cross_entropy(self.net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
                    self.opt.step()
            def validate(self):
                self.net.eval()  # GS505
                with torch.no_grad():
                    return self.net(torch.randn(8, 4)).mean().item()
            def run(self):
                self.net.train()
                for _ in range(3):
                    self.train_epoch()
                    self.validate()
        Runner().run()
    """)


def test_a_method_that_switches_back_first_is_left_alone() -> None:
    check("""
        class Runner:
            def __init__(self):
                self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 2))
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
            def train_epoch(self):
                self.net.train()
                for _ in range(2):
                    self.opt.zero_grad()
                    F.cross_entropy(self.net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
                    self.opt.step()
            def validate(self):
                self.net.eval()
                with torch.no_grad():
                    return self.net(torch.randn(8, 4)).mean().item()
            def run(self):
                for _ in range(3):
                    self.train_epoch()
                    self.validate()
        Runner().run()
    """)


def test_eval_mode_of_a_part_of_the_model_is_left_alone() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            net.train()
            for m in net.modules():
                if isinstance(m, nn.BatchNorm1d):
                    m.eval()
            for _ in range(2):
                opt.zero_grad()
                F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
                opt.step()
            net.eval()
            with torch.no_grad():
                net(torch.randn(8, 4))
    """)


def test_a_scheduler_that_steps_first_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.StepLR(opt, 2)
        for epoch in range(3):
            sched.step()  # GS506
            for _ in range(2):
                opt.zero_grad()
                F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
                opt.step()
    """)


def test_a_scheduler_between_backward_and_step_is_reported() -> None:
    check("""
        class Trainer:
            def __init__(self):
                self.net = nn.Linear(4, 2)
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
                self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda e: 0.9 ** e)
            def step(self, x, y):
                self.opt.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.sched.step()  # GS506
                self.opt.step()
        t = Trainer()
        for _ in range(3):
            t.step(torch.randn(4, 4), torch.randint(0, 2, (4,)))
    """)


def test_a_scheduler_per_batch_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=40)
        for epoch in range(2):
            for _ in range(10):
                opt.zero_grad()
                F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
                opt.step()
                sched.step()
    """)


def test_a_scheduler_that_waits_for_a_plateau_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=2)
        def train():
            net.train()
            total = 0.0
            for _ in range(10):
                opt.zero_grad()
                loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
                loss.backward()
                opt.step()
                total += loss.item()
            return total
        @torch.no_grad()
        def validate():
            net.eval()
            return F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).item()
        for epoch in range(5):
            train()
            sched.step(validate())
    """)


def test_clipping_scaled_gradients_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for i in range(4):
            opt.zero_grad()
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            scaler.scale(loss).backward()
            nn.utils.clip_grad_value_(net.parameters(), 0.5)  # GS507
            scaler.step(opt)
            scaler.update()
    """)


def test_measuring_scaled_gradients_is_reported() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for i in range(8):
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            (scaler.scale(loss) / 4).backward()
            if i % 4 == 3:
                total = torch.norm(torch.stack([p.grad.norm() for p in net.parameters()]))  # GS507
                print(total)
                scaler.step(opt)
                scaler.update()
                opt.zero_grad()
    """)


def test_unscaling_by_hand_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for i in range(4):
            opt.zero_grad()
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            scaler.scale(loss).backward()
            inv = 1.0 / scaler.get_scale()
            for p in net.parameters():
                p.grad.mul_(inv)
            norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
            opt.step()
            scaler.update(65536.0)
    """)


def test_a_scaler_that_is_switched_off_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        for i in range(4):
            opt.zero_grad()
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            scaler.step(opt)
            scaler.update()
    """)


def test_accumulation_with_a_scaler_is_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for i in range(8):
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            with torch.autocast("cpu"):
                loss = F.cross_entropy(net(x), y) / 4
            scaler.scale(loss).backward()
            if (i + 1) % 4 == 0:
                scaler.unscale_(opt)
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()
                opt.zero_grad(set_to_none=True)
    """)


def test_checks_for_overflow_and_norms_after_unscaling_are_left_alone() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        norms = []
        for i in range(8):
            opt.zero_grad()
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            for p in net.parameters():
                if p.grad is not None and not torch.isfinite(p.grad).all():
                    print("overflow")
            scaler.unscale_(opt)
            total = 0.0
            for p in net.parameters():
                total += p.grad.norm().item() ** 2
            norms.append(total ** 0.5)
            scaler.step(opt)
            scaler.update()
            print(net.weight.grad.norm())
    """)


def test_two_optimizers_behind_one_scaler_are_left_alone() -> None:
    check("""
        enc, dec = nn.Linear(4, 4), nn.Linear(4, 2)
        o1 = torch.optim.SGD(enc.parameters(), lr=0.1)
        o2 = torch.optim.SGD(dec.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for i in range(4):
            o1.zero_grad(); o2.zero_grad()
            loss = F.cross_entropy(dec(torch.relu(enc(torch.randn(8, 4)))), torch.randint(0, 2, (8,)))
            scaler.scale(loss).backward()
            scaler.unscale_(o1)
            nn.utils.clip_grad_norm_(enc.parameters(), 1.0)
            scaler.step(o1)
            scaler.step(o2)
            scaler.update()
    """)


def test_a_discriminator_loss_that_reaches_the_generator_is_reported() -> None:
    check("""
        G, D = nn.Linear(4, 2), nn.Linear(2, 1)
        og = torch.optim.Adam(G.parameters())
        od = torch.optim.Adam(D.parameters())
        for i in range(5):
            fake = G(torch.randn(8, 4))
            od.zero_grad()
            d_loss = D(fake).mean() - D(torch.randn(8, 2)).mean()
            d_loss.backward()  # GS508
            od.step()
            g_loss = -D(G(torch.randn(8, 4))).mean()
            g_loss.backward()
            og.step()
            og.zero_grad()
    """)


def test_an_actor_loss_that_reaches_the_critic_is_reported() -> None:
    check("""
        actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
        oa = torch.optim.Adam(actor.parameters())
        oc = torch.optim.Adam(critic.parameters())
        for i in range(5):
            s = torch.randn(8, 4)
            actor_loss = -critic(torch.cat([s, actor(s)], 1)).mean()
            oa.zero_grad()
            actor_loss.backward()  # GS508
            oa.step()
            critic_loss = (critic(torch.cat([s, torch.randn(8, 2)], 1)) - torch.randn(8, 1)).pow(2).mean()
            critic_loss.backward()
            oc.step()
            oc.zero_grad()
    """)


def test_an_actor_loss_is_left_alone_where_the_critic_is_cleared() -> None:
    check("""
        actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
        oa = torch.optim.Adam(actor.parameters())
        oc = torch.optim.Adam(critic.parameters())
        for i in range(5):
            s = torch.randn(8, 4)
            actor_loss = -critic(torch.cat([s, actor(s)], 1)).mean()
            oa.zero_grad()
            actor_loss.backward()
            oa.step()
            critic_loss = (critic(torch.cat([s, torch.randn(8, 2)], 1)) - torch.randn(8, 1)).pow(2).mean()
            oc.zero_grad()
            critic_loss.backward()
            oc.step()
    """)


def test_toggling_requires_grad_of_one_network_does_not_protect_the_other() -> None:
    check("""
        def set_grad(net, flag):
            for p in net.parameters():
                p.requires_grad = flag
        G, D = nn.Linear(4, 2), nn.Linear(2, 1)
        og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(3):
            set_grad(D, True)
            fake = G(torch.randn(8, 4))
            d_loss = F.softplus(D(fake)).mean() + F.softplus(-D(torch.randn(8, 2))).mean()
            od.zero_grad()
            d_loss.backward()  # GS508
            od.step()
            set_grad(D, False)
            g_loss = F.softplus(-D(G(torch.randn(8, 4)))).mean()
            g_loss.backward()
            og.step()
            og.zero_grad()
    """)


def test_a_frozen_parameter_with_a_gradient_of_zero_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.Adam(net.parameters())
        for step in range(6):
            if step == 3:
                for p in net[0].parameters():
                    p.requires_grad = False  # GS509
            opt.zero_grad(set_to_none=False)
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
    """)


def test_a_frozen_parameter_without_gradient_is_left_alone() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.Adam(net.parameters())
        for step in range(6):
            if step == 3:
                for p in net[0].parameters():
                    p.requires_grad = False
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
    """)


def test_freezing_while_momentum_lasts_is_reported() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        def step():
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
            opt.zero_grad(set_to_none=False)
        step()
        for p in net[0].parameters():
            p.requires_grad = False  # GS509
        for _ in range(3):
            step()
    """)


def test_zeroed_rows_that_decay_are_reported() -> None:
    check("""
        emb, head = nn.Embedding(10, 4), nn.Linear(4, 2)
        opt = torch.optim.AdamW([*emb.parameters(), *head.parameters()], lr=0.1)
        for _ in range(4):
            opt.zero_grad()
            F.cross_entropy(head(emb(torch.randint(0, 10, (8,)))), torch.randint(0, 2, (8,))).backward()
            emb.weight.grad[:5] = 0  # GS509
            opt.step()
    """)


def test_zeroed_rows_under_plain_descent_are_left_alone() -> None:
    check("""
        emb, head = nn.Embedding(10, 4), nn.Linear(4, 2)
        opt = torch.optim.SGD([*emb.parameters(), *head.parameters()], lr=0.1)
        for _ in range(4):
            opt.zero_grad()
            F.cross_entropy(head(emb(torch.randint(0, 10, (8,)))), torch.randint(0, 2, (8,))).backward()
            emb.weight.grad[:5] = 0
            opt.step()
    """)


def test_zeroed_rows_without_decay_or_history_are_left_alone() -> None:
    check("""
        emb, head = nn.Embedding(10, 4), nn.Linear(4, 2)
        opt = torch.optim.Adam([*emb.parameters(), *head.parameters()], lr=0.1)
        start = emb.weight.detach().clone()
        for _ in range(4):
            opt.zero_grad()
            F.cross_entropy(head(emb(torch.randint(0, 10, (8,)))), torch.randint(0, 2, (8,))).backward()
            emb.weight.grad[:5] = 0
            opt.step()
        assert torch.equal(start[:5], emb.weight[:5])
    """)


def test_weights_masked_again_after_the_step_are_left_alone() -> None:
    check("""
        layer = nn.Linear(6, 4)
        mask = (layer.weight.abs() > 0.1).float()
        opt = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        layer(torch.randn(8, 6)).pow(2).mean().backward()
        opt.step()
        layer.weight.data.mul_(mask)
        for _ in range(4):
            opt.zero_grad()
            layer(torch.randn(8, 6)).pow(2).mean().backward()
            layer.weight.grad.mul_(mask)
            opt.step()
            layer.weight.data.mul_(mask)
    """)


def test_a_group_without_decay_is_left_alone() -> None:
    check("""
        emb, head = nn.Embedding(10, 4), nn.Linear(4, 2)
        opt = torch.optim.AdamW([{"params": emb.parameters(), "weight_decay": 0.0}, {"params": head.parameters()}], lr=0.1)
        for _ in range(4):
            opt.zero_grad()
            F.cross_entropy(head(emb(torch.randint(0, 10, (8,)))), torch.randint(0, 2, (8,))).backward()
            emb.weight.grad[:5] = 0
            opt.step()
    """)


def test_scaled_and_clamped_gradients_are_no_masks() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.AdamW(net.parameters(), lr=0.1)
        for _ in range(4):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            for p in net[0].parameters():
                p.grad.mul_(0.1)
            for p in net.parameters():
                p.grad.clamp_(-1, 1)
            opt.step()
    """)


def test_dropped_gradients_hold_a_parameter_still() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.AdamW(net.parameters(), lr=0.1)
        for _ in range(4):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            for p in net[0].parameters():
                p.grad = None
            opt.step()
    """)


def test_groups_that_get_the_new_parameters_are_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD([{"params": [p], "name": n} for n, p in net.named_parameters()], lr=0.1)
        def swap(name, values):
            fresh = nn.Parameter(values)
            setattr(net, name, fresh)
            for group in opt.param_groups:
                if group["name"] == name:
                    group["params"] = [fresh]
        for it in range(3):
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
            swap("weight", net.weight.detach() * 0.5)
    """)


def test_layers_inside_plain_objects_of_a_tuple_are_not_registered() -> None:
    check("""
        class Expert:
            def __init__(self, width):
                self.up = nn.Linear(width, 1)
            def __call__(self, x):
                return self.up(x)
        class Mixture(nn.Module):
            def __init__(self):
                super().__init__()
                self.gate = nn.Linear(4, 2)
                self.experts = tuple(Expert(4) for _ in range(2))  # GS601
            def forward(self, x):
                return (self.gate(x) * torch.cat([e(x) for e in self.experts], -1)).sum()
        net = Mixture()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            net(torch.randn(3, 4)).backward()
            opt.step()
    """)


def test_a_replaced_parameter_is_not_said_to_be_cut_off() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for round in range(3):
            if round == 1:
                kept = net.weight.detach() * (net.weight.detach().abs() > 0.1)
                net.weight = nn.Parameter(kept)  # GS504
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
    """)
