"""Details that look like faults and are none, beside one that is."""

from __future__ import annotations

from tests.interp.checking import check


def test_a_schedule_wound_forward_raises_no_alarm() -> None:
    check("""
        import os
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.StepLR(opt, 2)
        start_epoch = int(os.environ.get("START", "3"))
        for _ in range(start_epoch):
            sched.step()
        for epoch in range(start_epoch, start_epoch + 2):
            opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
            sched.step()
    """)


def test_a_schedule_told_its_epoch_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.StepLR(opt, 2)
        for epoch in range(3):
            sched.step(epoch)
            opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
    """)


def test_dropout_switched_on_for_sampling_raises_no_alarm() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def enable_dropout(m):
            for mod in m.modules():
                if isinstance(mod, nn.Dropout):
                    mod.train()
        for epoch in range(2):
            net.train()
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
            net.eval()
            enable_dropout(net)
            with torch.no_grad():
                samples = torch.stack([net(torch.randn(8, 4)).softmax(1) for _ in range(3)])
    """)


def test_a_train_method_that_keeps_a_part_in_eval_mode_raises_no_alarm() -> None:
    check("""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
                self.head = nn.Linear(8, 2)
                for p in self.backbone.parameters():
                    p.requires_grad = False
            def train(self, mode=True):
                super().train(mode)
                self.backbone.eval()
                return self
            def forward(self, x):
                return self.head(self.backbone(x))
        m = Model()
        opt = torch.optim.SGD(m.head.parameters(), lr=0.1)
        for epoch in range(3):
            m.train()
            opt.zero_grad()
            F.cross_entropy(m(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
            m.eval()
            with torch.no_grad():
                m(torch.randn(8, 4))
    """)


def test_a_network_that_grows_between_optimizers_raises_no_alarm() -> None:
    check("""
        class Growing(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4)])
                self.head = nn.Linear(4, 1)
            def grow(self):
                self.layers.append(nn.Linear(4, 4))
            def forward(self, x):
                for l in self.layers:
                    x = torch.relu(l(x))
                return self.head(x)
        net = Growing()
        for stage in range(3):
            opt = torch.optim.Adam(net.parameters())
            for _ in range(2):
                opt.zero_grad()
                net(torch.randn(8, 4)).pow(2).mean().backward()
                opt.step()
            net.grow()
    """)


def test_a_network_that_grows_under_its_optimizer_is_reported() -> None:
    check("""
        class Growing(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4)])
                self.head = nn.Linear(4, 1)
            def grow(self):
                self.layers.append(nn.Linear(4, 4))  # GS504
            def forward(self, x):
                for l in self.layers:
                    x = torch.relu(l(x))
                return self.head(x)
        net = Growing()
        opt = torch.optim.Adam(net.parameters())
        for stage in range(3):
            for _ in range(2):
                opt.zero_grad()
                net(torch.randn(8, 4)).pow(2).mean().backward()
                opt.step()
            net.grow()
    """)


def test_an_encoder_cleared_by_both_optimizers_raises_no_alarm() -> None:
    check("""
        enc, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        oa = torch.optim.Adam([*enc.parameters(), *a.parameters()])
        ob = torch.optim.Adam([*enc.parameters(), *b.parameters()])
        for _ in range(3):
            x = torch.randn(8, 4)
            oa.zero_grad()
            a(enc(x)).pow(2).mean().backward()
            oa.step()
            ob.zero_grad()
            b(enc(x)).abs().mean().backward()
            ob.step()
    """)


def test_two_losses_for_one_step_raise_no_alarm() -> None:
    check("""
        G, D, C = nn.Linear(4, 2), nn.Linear(2, 1), nn.Linear(2, 3)
        og = torch.optim.Adam(G.parameters())
        od = torch.optim.Adam([*D.parameters(), *C.parameters()])
        for _ in range(3):
            fake = G(torch.randn(8, 4))
            od.zero_grad()
            D(fake.detach()).mean().backward()
            C(torch.randn(8, 2)).pow(2).mean().backward()
            od.step()
            og.zero_grad()
            (-D(fake).mean() + C(fake).logsumexp(1).mean()).backward()
            og.step()
    """)


def test_gradients_dropped_before_an_inner_loop_raise_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for p in net.parameters():
                p.grad = None
            for _ in range(4):
                (net(torch.randn(8, 4)).pow(2).mean() / 4).backward()
            opt.step()
    """)


def test_gradients_zeroed_through_parameter_groups_raise_no_alarm() -> None:
    check("""
        class T:
            def __init__(self):
                self.net = nn.Linear(4, 2)
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
            def on_step_begin(self):
                for g in self.opt.param_groups:
                    for p in g["params"]:
                        if p.grad is not None:
                            p.grad.detach_()
                            p.grad.zero_()
            def run(self):
                for _ in range(3):
                    self.on_step_begin()
                    self.net(torch.randn(8, 4)).pow(2).mean().backward()
                    self.opt.step()
        T().run()
    """)


def test_gradients_zeroed_all_at_once_raise_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
            torch._foreach_zero_([p.grad for p in net.parameters()])
    """)


def test_norms_after_the_scaled_step_raise_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(3):
            opt.zero_grad()
            scaler.scale(net(torch.randn(8, 4)).pow(2).mean()).backward()
            scaler.step(opt)
            scaler.update()
            norm = sum(p.grad.pow(2).sum() for p in net.parameters()).sqrt()
            print(norm.item())
    """)


def test_gradients_dropped_for_the_first_steps_raise_no_alarm() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.AdamW(net.parameters(), lr=0.1)
        for step in range(4):
            opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            if step < 2:
                net[0].weight.grad = None
                net[0].bias.grad = None
            opt.step()
    """)


def test_flattened_gradients_are_copies() -> None:
    check("""
        net = nn.Linear(4, 2)
        def flat():
            return torch.cat([p.grad.view(-1) for p in net.parameters()])
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = []
        for _ in range(3):
            opt.zero_grad(set_to_none=False)
            net(torch.randn(8, 4)).pow(2).mean().backward()
            seen.append(flat())
            opt.step()
        print(torch.stack(seen))
    """)


def test_losses_listed_for_one_backward_raise_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            losses = []
            for _ in range(3):
                losses.append(net(torch.randn(8, 4)).pow(2).mean())
            total = torch.stack(losses).sum()
            opt.zero_grad()
            total.backward()
            opt.step()
            print([l.item() for l in losses])
    """)


def test_fakes_used_detached_first_raise_no_alarm() -> None:
    check("""
        G, D = nn.Linear(4, 2), nn.Linear(2, 1)
        og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(3):
            fake = G(torch.randn(8, 4))
            od.zero_grad()
            D(fake.detach()).mean().backward()
            od.step()
            og.zero_grad()
            (-D(fake)).mean().backward()
            og.step()
    """)


def test_weights_swapped_by_copies_raise_no_alarm() -> None:
    check("""
        net = nn.Linear(3, 1)
        ema = {n: p.detach().clone() for n, p in net.named_parameters()}
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
            with torch.no_grad():
                for n, p in net.named_parameters():
                    ema[n].mul_(0.9).add_(p, alpha=0.1)
        store = {n: p.detach().clone() for n, p in net.named_parameters()}
        with torch.no_grad():
            for n, p in net.named_parameters():
                p.copy_(ema[n])
        val = net(torch.randn(4, 3)).mean()
        with torch.no_grad():
            for n, p in net.named_parameters():
                p.copy_(store[n])
    """)


def test_slow_weights_copied_back_raise_no_alarm() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        slow = [p.clone().detach() for p in net.parameters()]
        for step in range(4):
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
            if step % 2 == 1:
                for s, p in zip(slow, net.parameters()):
                    s.add_(p.data - s, alpha=0.5)
                    p.data.copy_(s)
    """)


def test_a_ring_buffer_cloned_on_use_raises_no_alarm() -> None:
    check("""
        buf = torch.zeros(4, 3)
        ptr = 0
        net = nn.Linear(3, 1)
        for t in range(6):
            buf[ptr] = torch.randn(3)
            ptr = (ptr + 1) % 4
            net(buf.clone()).mean().backward()
    """)


def test_statistics_kept_without_grad_raise_no_alarm() -> None:
    check("""
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(3))
                self.register_buffer("count", torch.zeros(()))
                self.fc = nn.Linear(3, 3)
            def forward(self, x):
                if self.training:
                    with torch.no_grad():
                        self.count += 1
                        self.mean += (x.mean(0) - self.mean) / self.count
                return self.fc(x - self.mean)
        n = Norm()
        opt = torch.optim.SGD(n.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            n(torch.randn(5, 3)).pow(2).mean().backward()
            opt.step()
    """)


def test_detached_weights_of_two_terms_raise_no_alarm() -> None:
    check("""
        net = nn.Linear(3, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            out = net(torch.randn(5, 3))
            a, b = out[:, 0].pow(2).mean(), out[:, 1].pow(2).mean()
            w = (a / (a + b)).detach()
            loss = w * a + (1 - w) * b
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_detached_focal_factor_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(3, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            logits = net(torch.randn(5, 3))
            y = torch.randint(0, 2, (5,))
            ce = F.cross_entropy(logits, y, reduction="none")
            p = torch.exp(-ce.detach())
            loss = ((1 - p) ** 2 * ce).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_detached_maximum_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(3, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            logits = net(torch.randn(5, 3))
            logits = logits - logits.max(dim=1, keepdim=True).values.detach()
            loss = -(logits - logits.logsumexp(1, keepdim=True))[:, 0].mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_layer_class_as_the_default_of_a_ready_made_layer_raises_no_alarm() -> None:
    check("""
        class Block(nn.Module):
            def __init__(self, normalization: nn.Module = nn.LayerNorm):
                super().__init__()
                self.normalization = normalization
                self.inner = nn.Linear(3, 3)

            def forward(self, x):
                return self.normalization(self.inner(x))
    """)


def test_a_function_that_writes_past_autograd_on_purpose_raises_no_alarm() -> None:
    check("""
        class Assign(torch.autograd.Function):
            @staticmethod
            def forward(ctx, scratch, value, index):
                ctx.index = index
                scratch.data[index] = value
                return scratch

            @staticmethod
            def backward(ctx, grad):
                return grad, grad[ctx.index], None

        def put(scratch, value):
            return Assign.apply(scratch, value, 0)
    """)


def test_an_index_kept_on_ctx_raises_no_alarm() -> None:
    check("""
        class Pick(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, order):
                ctx.order = order
                ctx.shape = x.shape
                return x[order]

            @staticmethod
            def backward(ctx, grad):
                out = torch.zeros(ctx.shape)
                return out.index_add(0, ctx.order, grad), None

        x = torch.randn(4, requires_grad=True)
        Pick.apply(x, torch.argsort(x.detach())).sum().backward()
    """)


def test_a_hook_that_edits_a_gradient_nobody_else_is_given_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(3, 3)
        for parameter in net.parameters():
            parameter.register_hook(lambda grad: grad.clamp_(-1, 1))
        hidden = net(torch.randn(2, 3))
        hidden.register_hook(lambda grad: grad.mul_(0.5))
        hidden.pow(2).mean().backward()
    """)
