"""Scripts, trainers and helpers around training: GradSight keeps silent."""

from __future__ import annotations

from tests.interp.checking import check


def test_cross_validation_raises_no_alarm() -> None:
    check("""
        scores = []
        data_x, data_y = torch.randn(30, 4), torch.randint(0, 2, (30,))
        for fold in range(3):
            model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 2))
            opt = torch.optim.Adam(model.parameters(), lr=1e-2)
            val = torch.arange(fold * 10, fold * 10 + 10)
            mask = torch.ones(30, dtype=torch.bool)
            mask[val] = False
            best = 0.0
            for epoch in range(3):
                model.train()
                opt.zero_grad()
                F.cross_entropy(model(data_x[mask]), data_y[mask]).backward()
                opt.step()
                model.eval()
                with torch.no_grad():
                    acc = (model(data_x[val]).argmax(1) == data_y[val]).float().mean().item()
                best = max(best, acc)
            scores.append(best)
    """)


def test_a_learning_rate_finder_raises_no_alarm() -> None:
    check("""
        model = nn.Linear(4, 2)
        init = {k: v.clone() for k, v in model.state_dict().items()}
        opt = torch.optim.SGD(model.parameters(), lr=1e-7)
        lr, losses = 1e-7, []
        while lr < 1:
            for g in opt.param_groups:
                g["lr"] = lr
            loss = F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append((lr, loss.item()))
            lr *= 10
        model.load_state_dict(init)
    """)


def test_adaptation_at_test_time_raises_no_alarm() -> None:
    check("""
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        model.train()
        model.requires_grad_(False)
        params = []
        for m in model.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.requires_grad_(True)
                m.track_running_stats = False
                params += [m.weight, m.bias]
        opt = torch.optim.Adam(params, lr=1e-3)
        for _ in range(3):
            out = model(torch.randn(8, 4))
            loss = -(out.softmax(1) * out.log_softmax(1)).sum(1).mean()
            loss.backward()
            opt.step()
            opt.zero_grad()
    """)


def test_checkpointed_blocks_raises_no_alarm() -> None:
    check("""
        from torch.utils.checkpoint import checkpoint
        class Deep(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3)])
                self.head = nn.Linear(8, 2)
            def forward(self, x):
                for b in self.blocks:
                    x = checkpoint(b, x, use_reentrant=False)
                return self.head(x)
        net = Deep()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(4, 8)), torch.randint(0, 2, (4,))).backward()
            opt.step()
    """)


def test_a_trainer_with_mixup_and_accumulation_raises_no_alarm() -> None:
    check("""
        class Trainer:
            def __init__(self, model, lr=0.1, accum=2, clip=1.0):
                self.model = model
                self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
                self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: min(1.0, (s + 1) / 10))
                self.accum, self.clip = accum, clip
                self.history = {"loss": [], "norm": []}
            def mixup(self, x, y):
                lam = torch.distributions.Beta(0.2, 0.2).sample()
                perm = torch.randperm(len(x))
                return lam * x + (1 - lam) * x[perm], y, y[perm], lam
            def fit(self, batches, epochs=2):
                for epoch in range(epochs):
                    self.model.train()
                    running = 0.0
                    for i, (x, y) in enumerate(batches):
                        mx, ya, yb, lam = self.mixup(x, y)
                        out = self.model(mx)
                        loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
                        (loss / self.accum).backward()
                        running += loss.item()
                        if (i + 1) % self.accum == 0:
                            norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
                            self.history["norm"].append(norm.item())
                            self.opt.step()
                            self.sched.step()
                            self.opt.zero_grad(set_to_none=True)
                    self.history["loss"].append(running / len(batches))
                    self.evaluate(batches)
            @torch.no_grad()
            def evaluate(self, batches):
                self.model.eval()
                return sum((self.model(x).argmax(1) == y).float().mean().item() for x, y in batches) / len(batches)
        t = Trainer(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)))
        t.fit([(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(4)])
    """)


def test_noise_added_to_gradients_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            for p in net.parameters():
                if p.grad is not None:
                    p.grad += torch.randn_like(p.grad) * 0.01
                    p.grad.data.div_(2)
            opt.step()
    """)


def test_centralised_gradients_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.AdamW(net.parameters(), lr=0.1)
        for step in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            for p in net.parameters():
                if p.dim() > 1:
                    p.grad -= p.grad.mean(dim=1, keepdim=True)
            opt.step()
    """)


def test_three_optimizers_for_one_loss_raises_no_alarm() -> None:
    check("""
        enc, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        oe = torch.optim.Adam(enc.parameters())
        oa = torch.optim.Adam(a.parameters())
        ob = torch.optim.Adam(b.parameters())
        for _ in range(3):
            x = torch.randn(8, 4)
            h = enc(x)
            la, lb = a(h).pow(2).mean(), b(h).abs().mean()
            for o in (oe, oa, ob):
                o.zero_grad()
            (la + lb).backward()
            for o in (oe, oa, ob):
                o.step()
    """)


def test_two_optimizers_for_one_layer_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        o1 = torch.optim.Adam([net.weight])
        o2 = torch.optim.Adam([net.bias])
        for i in range(4):
            o1.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            o1.step()
            o2.zero_grad()
            net(torch.randn(8, 4)).abs().mean().backward()
            o2.step()
    """)


def test_an_unrolled_discriminator_raises_no_alarm() -> None:
    check("""
        import copy
        G, D = nn.Linear(4, 2), nn.Linear(2, 1)
        og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(2):
            backup = copy.deepcopy(D.state_dict())
            for k in range(2):
                od.zero_grad()
                F.softplus(D(G(torch.randn(8, 4)).detach())).mean().backward()
                od.step()
            og.zero_grad()
            F.softplus(-D(G(torch.randn(8, 4)))).mean().backward()
            og.step()
            D.load_state_dict(backup)
    """)


def test_weights_drawn_from_a_distribution_raises_no_alarm() -> None:
    check("""
        mu = torch.zeros(3, requires_grad=True)
        rho = torch.full((3,), -3.0, requires_grad=True)
        opt = torch.optim.Adam([mu, rho], lr=0.1)
        for _ in range(3):
            sigma = F.softplus(rho)
            w = mu + sigma * torch.randn(3)
            logq = torch.distributions.Normal(mu, sigma).log_prob(w).sum()
            logp = torch.distributions.Normal(0.0, 1.0).log_prob(w).sum()
            nll = (torch.randn(10, 3) @ w).pow(2).mean()
            loss = logq - logp + nll
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_relaxed_categorical_raises_no_alarm() -> None:
    check("""
        logits = torch.zeros(5, requires_grad=True)
        opt = torch.optim.SGD([logits], lr=0.1)
        for step in range(3):
            tau = max(0.5, 1.0 - 0.1 * step)
            y = F.gumbel_softmax(logits, tau=tau, hard=True)
            loss = (y * torch.arange(5.0)).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_norms_logged_per_layer_raises_no_alarm() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        hist = {n: [] for n, _ in net.named_parameters()}
        for _ in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            for n, p in net.named_parameters():
                hist[n].append(p.grad.detach().norm().item())
            grads = torch.cat([p.grad.flatten() for p in net.parameters()])
            print(grads.abs().max().item())
            opt.step()
    """)


def test_a_script_with_arguments_and_mixed_precision_raises_no_alarm() -> None:
    check("""
        import argparse
        import logging
        from dataclasses import dataclass, field
        log = logging.getLogger(__name__)
        @dataclass
        class Config:
            lr: float = 0.1
            epochs: int = 2
            hidden: int = 8
            optimizer: str = "sgd"
            betas: tuple = field(default_factory=lambda: (0.9, 0.999))
        def parse():
            p = argparse.ArgumentParser()
            p.add_argument("--lr", type=float, default=0.1)
            p.add_argument("--epochs", type=int, default=2)
            p.add_argument("--clip", type=float, default=None)
            p.add_argument("--amp", action="store_true")
            return p.parse_args([])
        def make_optimizer(name, params, lr):
            if name == "sgd":
                return torch.optim.SGD(params, lr=lr, momentum=0.9)
            elif name == "adam":
                return torch.optim.Adam(params, lr=lr)
            raise ValueError(name)
        def train_epoch(model, loader, opt, scaler, args, device):
            model.train()
            total = correct = seen = 0
            for i, (x, y) in enumerate(loader):
                x, y = x.to(device), y.to(device)
                opt.zero_grad()
                with torch.autocast(device_type="cpu", enabled=args.amp):
                    out = model(x)
                    loss = F.cross_entropy(out, y)
                if args.amp:
                    scaler.scale(loss).backward()
                    if args.clip is not None:
                        scaler.unscale_(opt)
                        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                    scaler.step(opt)
                    scaler.update()
                else:
                    loss.backward()
                    if args.clip is not None:
                        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                    opt.step()
                total += loss.item() * len(x)
                correct += (out.argmax(1) == y).sum().item()
                seen += len(x)
                if i % 2 == 0:
                    log.info("loss %.3f", total / seen)
            return total / seen, correct / seen
        @torch.no_grad()
        def evaluate(model, loader, device):
            model.eval()
            n = ok = 0
            for x, y in loader:
                out = model(x.to(device))
                ok += (out.argmax(1) == y.to(device)).sum().item()
                n += len(y)
            return ok / n
        def main():
            args = parse()
            cfg = Config()
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model = nn.Sequential(nn.Linear(4, cfg.hidden), nn.BatchNorm1d(cfg.hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(cfg.hidden, 2)).to(device)
            opt = make_optimizer(cfg.optimizer, model.parameters(), args.lr)
            sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=args.epochs)
            scaler = torch.amp.GradScaler("cpu", enabled=args.amp)
            loader = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(4)]
            best = 0.0
            try:
                for epoch in range(args.epochs):
                    loss, acc = train_epoch(model, loader, opt, scaler, args, device)
                    val = evaluate(model, loader, device)
                    sched.step()
                    if val > best:
                        best = val
                        torch.save(model.state_dict(), "/dev/null")
            except KeyboardInterrupt:
                print("stopped")
        if __name__ == "__main__":
            main()
    """)


def test_a_trainer_with_callbacks_raises_no_alarm() -> None:
    check("""
        class Callback:
            def on_batch_end(self, trainer): ...
            def on_epoch_end(self, trainer): ...
        class ClipGrad(Callback):
            def on_batch_end(self, trainer):
                nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        class Checkpoint(Callback):
            def __init__(self):
                self.best = None
            def on_epoch_end(self, trainer):
                self.best = {k: v.detach().cpu().clone() for k, v in trainer.model.state_dict().items()}
        class Trainer:
            def __init__(self, model, callbacks):
                self.model, self.callbacks = model, callbacks
                self.opt = self.configure()
            def configure(self):
                return torch.optim.AdamW(self.model.parameters(), lr=1e-3)
            def training_step(self, batch):
                x, y = batch
                return F.cross_entropy(self.model(x), y)
            def call(self, hook):
                for cb in self.callbacks:
                    getattr(cb, hook)(self)
            def fit(self, loader, epochs):
                for _ in range(epochs):
                    for batch in loader:
                        loss = self.training_step(batch)
                        self.opt.zero_grad()
                        loss.backward()
                        self.call("on_batch_end")
                        self.opt.step()
                    self.call("on_epoch_end")
        Trainer(nn.Linear(4, 2), [ClipGrad(), Checkpoint()]).fit([(torch.randn(8, 4), torch.randint(0, 2, (8,)))] * 2, 2)
    """)


def test_optimizers_looked_up_by_name_raises_no_alarm() -> None:
    check("""
        OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        SCHEDULERS = {"step": torch.optim.lr_scheduler.StepLR}
        model = nn.Linear(4, 2)
        opt = OPTIMIZERS["adam"](model.parameters(), lr=0.1)
        sched = SCHEDULERS["step"](opt, step_size=1)
        other = getattr(torch.optim, "AdamW")(model.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            model(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
            sched.step()
    """)


def test_a_progress_bar_of_ones_own_raises_no_alarm() -> None:
    check("""
        import sys
        class Bar:
            def __init__(self, it):
                self.it = it
            def __iter__(self):
                for i, v in enumerate(self.it):
                    sys.stdout.write(".")
                    yield v
            def set_postfix(self, **kw):
                pass
        model = nn.Linear(4, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        bar = Bar(range(4))
        for _ in bar:
            opt.zero_grad()
            loss = model(torch.randn(8, 4)).pow(2).mean()
            loss.backward()
            opt.step()
            bar.set_postfix(loss=loss.item())
    """)


def test_context_managers_around_steps_raises_no_alarm() -> None:
    check("""
        from contextlib import contextmanager
        import time
        @contextmanager
        def timed(name):
            t = time.time()
            yield
            print(name, time.time() - t)
        @contextmanager
        def frozen(module):
            flags = [p.requires_grad for p in module.parameters()]
            for p in module.parameters():
                p.requires_grad_(False)
            try:
                yield module
            finally:
                for p, f in zip(module.parameters(), flags):
                    p.requires_grad_(f)
        G, D = nn.Linear(4, 2), nn.Linear(2, 1)
        og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(3):
            with timed("d"):
                od.zero_grad()
                F.softplus(D(G(torch.randn(8, 4)).detach())).mean().backward()
                od.step()
            with timed("g"), frozen(D):
                og.zero_grad()
                F.softplus(-D(G(torch.randn(8, 4)))).mean().backward()
                og.step()
    """)


def test_a_step_in_a_closure_raises_no_alarm() -> None:
    check("""
        def fit(model, data, lr=0.1):
            opt = torch.optim.SGD(model.parameters(), lr=lr)
            history = []
            def step(x, y):
                opt.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                opt.step()
                history.append(loss.detach())
                return loss
            for x, y in data:
                step(x, y)
            return torch.stack(history)
        fit(nn.Linear(3, 1), [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)])
    """)


def test_two_optimizers_at_their_own_pace_raises_no_alarm() -> None:
    check("""
        emb, net = nn.Embedding(10, 4), nn.Linear(4, 2)
        dense = torch.optim.AdamW(net.parameters(), lr=1e-3)
        sparse = torch.optim.SGD(emb.parameters(), lr=0.1)
        for step in range(4):
            loss = F.cross_entropy(net(emb(torch.randint(0, 10, (8,)))), torch.randint(0, 2, (8,)))
            loss.backward()
            dense.step()
            dense.zero_grad()
            if step % 2 == 1:
                sparse.step()
                sparse.zero_grad()
    """)


def test_schedulers_in_sequence_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=2)
        main_s = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
        sched = torch.optim.lr_scheduler.SequentialLR(opt, [warm, main_s], milestones=[2])
        for epoch in range(4):
            opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
            sched.step()
            print(sched.get_last_lr()[0])
    """)


def test_gradients_averaged_over_workers_raises_no_alarm() -> None:
    check("""
        import copy
        model = nn.Linear(4, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        workers = [copy.deepcopy(model) for _ in range(2)]
        for _ in range(3):
            for w in workers:
                w.load_state_dict(model.state_dict())
                w.zero_grad()
                F.cross_entropy(w(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.zero_grad()
            for p, *qs in zip(model.parameters(), *[w.parameters() for w in workers]):
                p.grad = torch.stack([q.grad for q in qs]).mean(0)
            opt.step()
    """)


def test_weights_averaged_over_clients_raises_no_alarm() -> None:
    check("""
        import copy
        server = nn.Linear(4, 2)
        def local(model):
            m = copy.deepcopy(model)
            opt = torch.optim.SGD(m.parameters(), lr=0.1)
            for _ in range(2):
                opt.zero_grad()
                F.cross_entropy(m(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
                opt.step()
            return m.state_dict()
        for rnd in range(2):
            states = [local(server) for _ in range(3)]
            avg = {k: torch.stack([s[k].float() for s in states]).mean(0) for k in states[0]}
            server.load_state_dict(avg)
    """)


def test_weights_averaged_in_a_deep_copy_raises_no_alarm() -> None:
    check("""
        import copy
        server = nn.Linear(4, 2)
        clients = [copy.deepcopy(server) for _ in range(3)]
        avg = copy.deepcopy(clients[0].state_dict())
        for k in avg:
            for c in clients[1:]:
                avg[k] += c.state_dict()[k]
            avg[k] = avg[k] / len(clients)
        server.load_state_dict(avg)
        for c in clients:
            c(torch.randn(2, 4)).mean().backward()
    """)


def test_a_loop_with_patience_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        best, patience, step = float("inf"), 0, 0
        while patience < 3 and step < 20:
            opt.zero_grad()
            loss = net(torch.randn(8, 4)).pow(2).mean()
            loss.backward()
            opt.step()
            if loss.item() < best - 1e-4:
                best, patience = loss.item(), 0
            else:
                patience += 1
            step += 1
    """)
