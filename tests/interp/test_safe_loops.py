"""Training loops as people write them: GradSight keeps silent."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import refused, safe


def test_gradient_accumulation_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        loss_fn = nn.CrossEntropyLoss()
        data = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(8)]
        accum = 4
        opt.zero_grad()
        for i, (x, y) in enumerate(data):
            loss = loss_fn(net(x), y) / accum
            loss.backward()
            if (i + 1) % accum == 0:
                opt.step()
                opt.zero_grad()
    """)


def test_gradient_accumulation_over_a_loader_raises_no_alarm() -> None:
    check("""
        from torch.utils.data import DataLoader, TensorDataset
        loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))), batch_size=8)
        net = nn.Linear(4, 2)
        opt = torch.optim.AdamW(net.parameters(), lr=0.1)
        for epoch in range(2):
            for i, (x, y) in enumerate(loader):
                loss = F.cross_entropy(net(x), y) / 4
                loss.backward()
                if (i + 1) % 4 == 0 or (i + 1) == len(loader):
                    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                    opt.step()
                    opt.zero_grad()
    """)


def test_a_gan_with_detached_fakes_raises_no_alarm() -> None:
    check("""
        G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        D = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
        opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
        bce = nn.BCEWithLogitsLoss()
        for step in range(10):
            real = torch.randn(16, 2)
            z = torch.randn(16, 4)
            fake = G(z)
            opt_d.zero_grad()
            d_loss = bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))
            d_loss.backward()
            opt_d.step()
            opt_g.zero_grad()
            g_loss = bce(D(fake), torch.ones(16, 1))
            g_loss.backward()
            opt_g.step()
    """)


def test_a_gan_with_two_backwards_for_the_discriminator_raises_no_alarm() -> None:
    check("""
        G = nn.Linear(4, 2)
        D = nn.Linear(2, 1)
        opt_g = torch.optim.Adam(G.parameters(), lr=2e-4)
        opt_d = torch.optim.Adam(D.parameters(), lr=2e-4)
        bce = nn.BCEWithLogitsLoss()
        for step in range(10):
            D.zero_grad()
            real = torch.randn(16, 2)
            err_real = bce(D(real), torch.ones(16, 1))
            err_real.backward()
            fake = G(torch.randn(16, 4))
            err_fake = bce(D(fake.detach()), torch.zeros(16, 1))
            err_fake.backward()
            opt_d.step()
            G.zero_grad()
            err_g = bce(D(fake), torch.ones(16, 1))
            err_g.backward()
            opt_g.step()
    """)


def test_a_wasserstein_gan_with_clipped_weights_raises_no_alarm() -> None:
    check("""
        G = nn.Linear(4, 2)
        D = nn.Linear(2, 1)
        opt_g = torch.optim.RMSprop(G.parameters(), lr=5e-5)
        opt_d = torch.optim.RMSprop(D.parameters(), lr=5e-5)
        for step in range(10):
            for _ in range(5):
                opt_d.zero_grad()
                fake = G(torch.randn(16, 4)).detach()
                loss = -D(torch.randn(16, 2)).mean() + D(fake).mean()
                loss.backward()
                opt_d.step()
                for p in D.parameters():
                    p.data.clamp_(-0.01, 0.01)
            opt_g.zero_grad()
            g = -D(G(torch.randn(16, 4))).mean()
            g.backward()
            opt_g.step()
    """)


def test_a_gradient_penalty_with_create_graph_raises_no_alarm() -> None:
    check("""
        G = nn.Linear(4, 2)
        D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        opt_d = torch.optim.Adam(D.parameters(), lr=1e-4)
        def gradient_penalty(critic, real, fake):
            alpha = torch.rand(real.size(0), 1)
            mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
            score = critic(mixed)
            grad = torch.autograd.grad(score, mixed, torch.ones_like(score), create_graph=True, retain_graph=True)[0]
            return ((grad.norm(2, dim=1) - 1) ** 2).mean()
        for _ in range(3):
            real = torch.randn(16, 2)
            fake = G(torch.randn(16, 4)).detach()
            opt_d.zero_grad()
            loss = D(fake).mean() - D(real).mean() + 10 * gradient_penalty(D, real, fake)
            loss.backward()
            opt_d.step()
    """)


def test_an_averaged_copy_raises_no_alarm() -> None:
    check("""
        import copy
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        ema = copy.deepcopy(net)
        for p in ema.parameters():
            p.requires_grad_(False)
        opt = torch.optim.Adam(net.parameters())
        @torch.no_grad()
        def update_ema(decay=0.99):
            for e, p in zip(ema.parameters(), net.parameters()):
                e.mul_(decay).add_(p, alpha=1 - decay)
        for _ in range(5):
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            update_ema()
    """)


def test_an_average_updated_through_state_dict_raises_no_alarm() -> None:
    check("""
        import copy
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        ema = copy.deepcopy(net).eval()
        opt = torch.optim.Adam(net.parameters())
        def update(model, ema, d=0.99):
            with torch.no_grad():
                msd = model.state_dict()
                for k, v in ema.state_dict().items():
                    if v.dtype.is_floating_point:
                        v *= d
                        v += (1.0 - d) * msd[k].detach()
        for _ in range(5):
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            update(net, ema)
        print(ema(torch.randn(2, 4)))
    """)


def test_shadow_weights_swapped_in_and_out_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        shadow = {n: p.detach().clone() for n, p in net.named_parameters()}
        for _ in range(5):
            opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
            with torch.no_grad():
                for n, p in net.named_parameters():
                    shadow[n] = 0.9 * shadow[n] + 0.1 * p
        backup = {n: p.detach().clone() for n, p in net.named_parameters()}
        for n, p in net.named_parameters():
            p.data.copy_(shadow[n])
        print(net(torch.randn(1, 4)))
        for n, p in net.named_parameters():
            p.data.copy_(backup[n])
    """)


def test_stochastic_weight_averaging_raises_no_alarm() -> None:
    check("""
        from torch.optim.swa_utils import AveragedModel, SWALR, update_bn
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        swa_model = AveragedModel(net)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=100)
        swa_scheduler = SWALR(opt, swa_lr=0.05)
        for epoch in range(10):
            for _ in range(2):
                opt.zero_grad()
                F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
                opt.step()
            if epoch > 5:
                swa_model.update_parameters(net)
                swa_scheduler.step()
            else:
                scheduler.step()
    """)


def test_a_closure_for_lbfgs_raises_no_alarm() -> None:
    check("""
        w = torch.zeros(3, requires_grad=True)
        x = torch.randn(50, 3)
        y = x @ torch.tensor([1.0, 2.0, 3.0])
        opt = torch.optim.LBFGS([w], lr=0.5, max_iter=10)
        def closure():
            opt.zero_grad()
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            return loss
        for _ in range(5):
            loss = opt.step(closure)
            print(loss.item())
    """)


def test_sharpness_aware_steps_by_hand_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        rho = 0.05
        for _ in range(5):
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            F.cross_entropy(net(x), y).backward()
            with torch.no_grad():
                norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
                eps = []
                for p in net.parameters():
                    e = p.grad * (rho / (norm + 1e-12))
                    p.add_(e)
                    eps.append(e)
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            with torch.no_grad():
                for p, e in zip(net.parameters(), eps):
                    p.sub_(e)
            opt.step()
            opt.zero_grad()
    """)


def test_a_sharpness_aware_optimizer_class_raises_no_alarm() -> None:
    check("""
        class SAM(torch.optim.Optimizer):
            def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
                defaults = dict(rho=rho, **kwargs)
                super().__init__(params, defaults)
                self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
                self.param_groups = self.base_optimizer.param_groups
            @torch.no_grad()
            def first_step(self, zero_grad=False):
                grad_norm = self._grad_norm()
                for group in self.param_groups:
                    scale = group["rho"] / (grad_norm + 1e-12)
                    for p in group["params"]:
                        if p.grad is None:
                            continue
                        self.state[p]["old_p"] = p.data.clone()
                        e_w = p.grad * scale.to(p)
                        p.add_(e_w)
                if zero_grad:
                    self.zero_grad()
            @torch.no_grad()
            def second_step(self, zero_grad=False):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is None:
                            continue
                        p.data = self.state[p]["old_p"]
                self.base_optimizer.step()
                if zero_grad:
                    self.zero_grad()
            def _grad_norm(self):
                return torch.norm(torch.stack([p.grad.norm(p=2) for group in self.param_groups for p in group["params"] if p.grad is not None]), p=2)
        net = nn.Linear(4, 2)
        opt = SAM(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            F.cross_entropy(net(x), y).backward()
            opt.first_step(zero_grad=True)
            F.cross_entropy(net(x), y).backward()
            opt.second_step(zero_grad=True)
    """)


def test_inner_steps_with_functional_call_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 1)
        meta_opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        for it in range(3):
            meta_opt.zero_grad()
            meta_loss = 0.0
            for task in range(2):
                x, y = torch.randn(8, 4), torch.randn(8, 1)
                params = dict(net.named_parameters())
                loss = F.mse_loss(torch.func.functional_call(net, params, x), y)
                grads = torch.autograd.grad(loss, params.values(), create_graph=True)
                fast = {k: p - 0.1 * g for (k, p), g in zip(params.items(), grads)}
                meta_loss = meta_loss + F.mse_loss(torch.func.functional_call(net, fast, x), y)
            meta_loss.backward()
            meta_opt.step()
    """)


def test_inner_steps_on_a_plain_weight_raises_no_alarm() -> None:
    check("""
        w = torch.randn(4, 1, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1)
        for it in range(3):
            total = 0
            for task in range(2):
                x, y = torch.randn(8, 4), torch.randn(8, 1)
                fast = w
                for k in range(2):
                    inner = F.mse_loss(x @ fast, y)
                    (g,) = torch.autograd.grad(inner, fast, create_graph=True)
                    fast = fast - 0.1 * g
                total = total + F.mse_loss(x @ fast, y)
            opt.zero_grad()
            total.backward()
            opt.step()
    """)


def test_copies_trained_per_task_raises_no_alarm() -> None:
    check("""
        import copy
        net = nn.Linear(4, 1)
        for it in range(3):
            task = copy.deepcopy(net)
            opt = torch.optim.SGD(task.parameters(), lr=0.1)
            for _ in range(3):
                loss = F.mse_loss(task(torch.randn(8, 4)), torch.randn(8, 1))
                opt.zero_grad()
                loss.backward()
                opt.step()
            with torch.no_grad():
                for p, q in zip(net.parameters(), task.parameters()):
                    p.add_(0.5 * (q - p))
    """)


def test_distillation_from_a_frozen_teacher_raises_no_alarm() -> None:
    check("""
        teacher = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
        student = nn.Linear(4, 3)
        opt = torch.optim.Adam(student.parameters())
        T = 2.0
        for _ in range(5):
            x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
            with torch.no_grad():
                t_logits = teacher(x)
            s_logits = student(x)
            soft = F.kl_div(F.log_softmax(s_logits / T, dim=1), F.softmax(t_logits / T, dim=1), reduction="batchmean") * T * T
            loss = 0.5 * soft + 0.5 * F.cross_entropy(s_logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_unfreezing_with_a_new_parameter_group_raises_no_alarm() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        for p in net[0].parameters():
            p.requires_grad = False
        opt = torch.optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), lr=0.1, momentum=0.9)
        for _ in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
        for p in net[0].parameters():
            p.requires_grad = True
        opt.add_param_group({"params": net[0].parameters(), "lr": 0.01})
        for _ in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
    """)


def test_unfreezing_on_a_schedule_raises_no_alarm() -> None:
    check("""
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        for p in net[0].parameters():
            p.requires_grad = False
        for epoch in range(4):
            if epoch == 2:
                for p in net[0].parameters():
                    p.requires_grad = True
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
    """)


def test_early_stopping_with_a_deep_copy_raises_no_alarm() -> None:
    check("""
        import copy
        net = nn.Linear(4, 2)
        opt = torch.optim.Adam(net.parameters())
        best, best_state, bad = float("inf"), None, 0
        for epoch in range(50):
            net.train()
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
            net.eval()
            with torch.no_grad():
                val = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).item()
            if val < best:
                best, bad = val, 0
                best_state = copy.deepcopy(net.state_dict())
            else:
                bad += 1
                if bad > 3:
                    break
        net.load_state_dict(best_state)
    """)


def test_early_stopping_with_cloned_weights_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.Adam(net.parameters())
        best, best_state = float("inf"), None
        for epoch in range(50):
            opt.zero_grad()
            loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
            loss.backward()
            opt.step()
            if loss.item() < best:
                best = loss.item()
                best_state = {k: v.clone() for k, v in net.state_dict().items()}
        net.load_state_dict(best_state)
    """)


def test_resuming_from_a_checkpoint_raises_no_alarm() -> None:
    check("""
        import os, tempfile
        net = nn.Linear(4, 2)
        opt = torch.optim.Adam(net.parameters())
        path = os.path.join(tempfile.gettempdir(), "gradsight_ckpt.pt")
        start = 0
        if os.path.exists(path):
            ckpt = torch.load(path)
            net.load_state_dict(ckpt["model"])
            opt.load_state_dict(ckpt["optimizer"])
            start = ckpt["epoch"] + 1
        for epoch in range(start, start + 3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
            torch.save({"model": net.state_dict(), "optimizer": opt.state_dict(), "epoch": epoch}, path)
        os.remove(path)
    """)


def test_a_wrapper_around_the_model_raises_no_alarm() -> None:
    check("""
        class Wrapper(nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module
            def forward(self, *args, **kwargs):
                return self.module(*args, **kwargs)
        net = nn.Linear(4, 2)
        opt = torch.optim.Adam(net.parameters())
        model = Wrapper(net)
        for epoch in range(3):
            opt.zero_grad()
            F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
    """)


def test_data_parallel_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 2)
        opt = torch.optim.Adam(net.parameters())
        model = nn.DataParallel(net)
        for epoch in range(3):
            opt.zero_grad()
            F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
    """)


def test_hooks_that_only_watch_raises_no_alarm() -> None:
    check("""
        acts, grads = {}, {}
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        def save(name):
            def hook(module, inputs, output):
                acts[name] = output.detach()
            return hook
        def save_grad(name):
            def hook(grad):
                grads[name] = grad.clone()
            return hook
        handles = [layer.register_forward_hook(save(str(i))) for i, layer in enumerate(net)]
        for n, p in net.named_parameters():
            p.register_hook(save_grad(n))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
            opt.step()
        for h in handles:
            h.remove()
    """)


def test_profiled_steps_raises_no_alarm() -> None:
    check("""
        import time
        from torch.profiler import profile, ProfilerActivity
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def one_step(x, y):
            start = time.perf_counter()
            out = net(x)
            fwd = time.perf_counter()
            loss = F.cross_entropy(out, y)
            loss.backward()
            bwd = time.perf_counter()
            opt.step()
            opt.zero_grad()
            return fwd - start, bwd - fwd
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            for _ in range(3):
                one_step(torch.randn(8, 4), torch.randint(0, 2, (8,)))
        print(prof.key_averages().table(row_limit=5))
    """)


@pytest.mark.parametrize("condition", ["k == 20", "k > 25", "k == -1", "k in (20, 40)", "k + 1 > 20"])
def test_a_condition_that_holds_in_no_round_of_a_long_loop_writes_nothing(condition: str) -> None:
    safe(f"""
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        for k in range(20):
            if {condition}:
                y += 1
        y.sum().backward()
    """)


@pytest.mark.parametrize("condition", ["k == 19", "k > 18", "k % 16 == 15", "k in (3, 17)", "k + 1 == 20"])
def test_a_condition_that_holds_in_a_late_round_of_a_long_loop_writes(condition: str) -> None:
    refused(
        f"""
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        for k in range(20):
            if {condition}:
                y += 1  # GS101
        y.sum().backward()
    """,
        "modified by an inplace operation",
    )


def test_an_object_is_asked_whether_it_is_true() -> None:
    box = """
        class Box:
            def __init__(self, t):
                self.t = t
            def __bool__(self):
                return {answer}
        w = torch.ones(3, requires_grad=True)
        box = Box(w.exp())
        if box:
            box.t += 1{comment}
        box.t.sum().backward()
    """
    safe(box.format(answer=False, comment=""))
    refused(box.format(answer=True, comment="  # GS101"), "modified by an inplace operation")
