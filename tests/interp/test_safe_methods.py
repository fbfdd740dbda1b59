"""Methods of the literature, written plainly: GradSight keeps silent."""

from __future__ import annotations

from tests.interp.checking import check


def test_proximal_policy_optimisation_raises_no_alarm() -> None:
    check("""
        class ActorCritic(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
                self.pi = nn.Linear(32, 2)
                self.v = nn.Linear(32, 1)
            def forward(self, x):
                h = self.body(x)
                return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)
        ac = ActorCritic()
        opt = torch.optim.Adam(ac.parameters(), lr=3e-4, eps=1e-5)
        for update in range(3):
            obs = torch.randn(64, 4)
            with torch.no_grad():
                dist, values = ac(obs)
                actions = dist.sample()
                old_logp = dist.log_prob(actions)
            rewards = torch.randn(64)
            advantages = torch.zeros(64)
            last = 0.0
            for t in reversed(range(64)):
                next_value = values[t + 1] if t < 63 else 0.0
                delta = rewards[t] + 0.99 * next_value - values[t]
                advantages[t] = last = delta + 0.99 * 0.95 * last
            returns = advantages + values
            for epoch in range(2):
                perm = torch.randperm(64)
                for start in range(0, 64, 16):
                    idx = perm[start:start + 16]
                    dist, v = ac(obs[idx])
                    logp = dist.log_prob(actions[idx])
                    ratio = (logp - old_logp[idx]).exp()
                    adv = advantages[idx]
                    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                    pg = -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean()
                    vf = F.mse_loss(v, returns[idx])
                    loss = pg + 0.5 * vf - 0.01 * dist.entropy().mean()
                    opt.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(ac.parameters(), 0.5)
                    opt.step()
    """)


def test_soft_actor_critic_raises_no_alarm() -> None:
    check("""
        import copy
        actor = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
        q1 = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
        q2 = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
        q1_t, q2_t = copy.deepcopy(q1), copy.deepcopy(q2)
        log_alpha = torch.zeros(1, requires_grad=True)
        oa = torch.optim.Adam(actor.parameters(), lr=1e-3)
        oq = torch.optim.Adam(list(q1.parameters()) + list(q2.parameters()), lr=1e-3)
        ol = torch.optim.Adam([log_alpha], lr=1e-3)
        def sample(s):
            mu, log_std = actor(s).chunk(2, dim=-1)
            std = log_std.clamp(-5, 2).exp()
            dist = torch.distributions.Normal(mu, std)
            u = dist.rsample()
            a = torch.tanh(u)
            logp = dist.log_prob(u).sum(-1) - torch.log(1 - a.pow(2) + 1e-6).sum(-1)
            return a, logp
        for step in range(3):
            s, a, r, s2 = torch.randn(8, 4), torch.randn(8, 2), torch.randn(8), torch.randn(8, 4)
            alpha = log_alpha.exp().detach()
            with torch.no_grad():
                a2, logp2 = sample(s2)
                tq = torch.min(q1_t(torch.cat([s2, a2], 1)), q2_t(torch.cat([s2, a2], 1))).squeeze(1)
                target = r + 0.99 * (tq - alpha * logp2)
            q_loss = F.mse_loss(q1(torch.cat([s, a], 1)).squeeze(1), target) + F.mse_loss(q2(torch.cat([s, a], 1)).squeeze(1), target)
            oq.zero_grad()
            q_loss.backward()
            oq.step()
            an, logp = sample(s)
            qmin = torch.min(q1(torch.cat([s, an], 1)), q2(torch.cat([s, an], 1))).squeeze(1)
            a_loss = (alpha * logp - qmin).mean()
            oa.zero_grad()
            a_loss.backward()
            oa.step()
            l_loss = -(log_alpha * (logp.detach() - 2.0)).mean()
            ol.zero_grad()
            l_loss.backward()
            ol.step()
            with torch.no_grad():
                for p, tp in zip(q1.parameters(), q1_t.parameters()):
                    tp.mul_(0.995).add_(0.005 * p)
                for p, tp in zip(q2.parameters(), q2_t.parameters()):
                    tp.lerp_(p, 0.005)
    """)


def test_policy_gradients_with_normalised_returns_raises_no_alarm() -> None:
    check("""
        policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        opt = torch.optim.Adam(policy.parameters())
        for ep in range(3):
            log_probs, rewards = [], []
            s = torch.randn(4)
            for t in range(5):
                d = torch.distributions.Categorical(logits=policy(s))
                a = d.sample()
                log_probs.append(d.log_prob(a))
                s = torch.randn(4)
                rewards.append(float(a.item()))
            R, returns = 0.0, []
            for r in reversed(rewards):
                R = r + 0.99 * R
                returns.insert(0, R)
            returns = torch.tensor(returns)
            returns = (returns - returns.mean()) / (returns.std() + 1e-8)
            loss = torch.stack([-lp * G for lp, G in zip(log_probs, returns)]).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_target_network_raises_no_alarm() -> None:
    check("""
        import copy
        q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        tq = copy.deepcopy(q)
        opt = torch.optim.Adam(q.parameters())
        for step in range(4):
            s, a, r, s2 = torch.randn(8, 4), torch.randint(0, 2, (8,)), torch.rand(8), torch.randn(8, 4)
            target = r + 0.9 * tq(s2).max(1).values.detach()
            pred = q(s).gather(1, a[:, None]).squeeze(1)
            loss = F.smooth_l1_loss(pred, target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 2 == 0:
                tq.load_state_dict(q.state_dict())
    """)


def test_a_momentum_teacher_raises_no_alarm() -> None:
    check("""
        import copy
        online = nn.Linear(4, 3)
        target = copy.deepcopy(online)
        pred = nn.Linear(3, 3)
        opt = torch.optim.SGD([*online.parameters(), *pred.parameters()], lr=0.1)
        for _ in range(3):
            a, b = torch.randn(8, 4), torch.randn(8, 4)
            with torch.no_grad():
                t = target(b)
            loss = 2 - 2 * F.cosine_similarity(pred(online(a)), t, dim=-1).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                for p, tp in zip(online.parameters(), target.parameters()):
                    tp.data = 0.99 * tp.data + 0.01 * p.data
    """)


def test_a_queue_of_keys_raises_no_alarm() -> None:
    check("""
        import copy
        class MoCo(nn.Module):
            def __init__(self, dim=4, K=16, m=0.9):
                super().__init__()
                self.q = nn.Linear(8, dim)
                self.k = copy.deepcopy(self.q)
                for p in self.k.parameters():
                    p.requires_grad = False
                self.m, self.K = m, K
                self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
                self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))
            @torch.no_grad()
            def momentum(self):
                for pq, pk in zip(self.q.parameters(), self.k.parameters()):
                    pk.data = pk.data * self.m + pq.data * (1 - self.m)
            @torch.no_grad()
            def enqueue(self, keys):
                n = keys.shape[0]
                p = int(self.ptr)
                self.queue[:, p:p + n] = keys.T
                self.ptr[0] = (p + n) % self.K
            def forward(self, a, b):
                q = F.normalize(self.q(a), dim=1)
                with torch.no_grad():
                    self.momentum()
                    k = F.normalize(self.k(b), dim=1)
                pos = (q * k).sum(1, keepdim=True)
                neg = q @ self.queue.clone().detach()
                logits = torch.cat([pos, neg], 1) / 0.07
                labels = torch.zeros(len(a), dtype=torch.long)
                self.enqueue(k)
                return logits, labels
        m = MoCo()
        opt = torch.optim.SGD(m.q.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            logits, labels = m(torch.randn(4, 8), torch.randn(4, 8))
            loss = F.cross_entropy(logits, labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_variational_autoencoder_raises_no_alarm() -> None:
    check("""
        class VAE(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc = nn.Linear(8, 8)
                self.dec = nn.Linear(4, 8)
            def reparam(self, mu, logvar):
                std = torch.exp(0.5 * logvar)
                eps = torch.randn_like(std)
                return mu + eps * std
            def forward(self, x):
                mu, logvar = self.enc(x).chunk(2, -1)
                return torch.sigmoid(self.dec(self.reparam(mu, logvar))), mu, logvar
        vae = VAE()
        opt = torch.optim.Adam(vae.parameters())
        for _ in range(3):
            x = torch.rand(16, 8)
            out, mu, logvar = vae(x)
            bce = F.binary_cross_entropy(out, x, reduction="sum")
            kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
            loss = bce + kld
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(loss.item() / len(x), bce.item(), kld.item())
    """)


def test_a_codebook_with_stop_gradients_raises_no_alarm() -> None:
    check("""
        book, enc = nn.Embedding(8, 3), nn.Linear(4, 3)
        opt = torch.optim.Adam([*book.parameters(), *enc.parameters()])
        for _ in range(3):
            z = enc(torch.randn(8, 4))
            idx = torch.cdist(z, book.weight).argmin(1)
            q = book(idx)
            loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
            st = z + (q - z).detach()
            loss = loss + st.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_a_projected_gradient_attack_raises_no_alarm() -> None:
    check("""
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        def pgd(model, x, y, eps=0.3, alpha=0.1, steps=3):
            delta = torch.zeros_like(x, requires_grad=True)
            for _ in range(steps):
                loss = F.cross_entropy(model(x + delta), y)
                loss.backward()
                delta.data = (delta + alpha * delta.grad.detach().sign()).clamp(-eps, eps)
                delta.grad.zero_()
            return delta.detach()
        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            delta = pgd(model, x, y)
            loss = F.cross_entropy(model(x + delta), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_an_attack_by_autograd_grad_raises_no_alarm() -> None:
    check("""
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        def attack(x, y, eps=0.1):
            x_adv = x.clone().detach() + torch.empty_like(x).uniform_(-eps, eps)
            for _ in range(3):
                x_adv.requires_grad_()
                with torch.enable_grad():
                    loss = F.cross_entropy(model(x_adv), y)
                grad = torch.autograd.grad(loss, [x_adv])[0]
                x_adv = x_adv.detach() + 0.01 * torch.sign(grad.detach())
                x_adv = torch.min(torch.max(x_adv, x - eps), x + eps)
                x_adv = torch.clamp(x_adv, 0, 1)
            return x_adv
        attack(torch.rand(4, 4), torch.randint(0, 2, (4,)))
    """)


def test_style_transfer_raises_no_alarm() -> None:
    check("""
        feat = nn.Conv2d(3, 4, 3).eval()
        for p in feat.parameters():
            p.requires_grad_(False)
        content, style = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)
        def gram(x):
            b, c, h, w = x.shape
            f = x.view(c, h * w)
            return f @ f.t() / (c * h * w)
        target_c, target_s = feat(content), gram(feat(style))
        img = content.clone().requires_grad_(True)
        opt = torch.optim.LBFGS([img], max_iter=3)
        run = [0]
        while run[0] <= 5:
            def closure():
                with torch.no_grad():
                    img.clamp_(0, 1)
                opt.zero_grad()
                f = feat(img)
                loss = F.mse_loss(f, target_c) + 1e3 * F.mse_loss(gram(f), target_s)
                loss.backward()
                run[0] += 1
                return loss
            opt.step(closure)
    """)


def test_projected_conflicting_gradients_raises_no_alarm() -> None:
    check("""
        import random
        net = nn.Linear(4, 2)
        opt = torch.optim.Adam(net.parameters())
        for _ in range(3):
            x = torch.randn(8, 4)
            losses = [net(x)[:, 0].pow(2).mean(), (net(x)[:, 1] - 1).pow(2).mean()]
            grads = []
            for l in losses:
                opt.zero_grad()
                l.backward(retain_graph=True)
                grads.append([p.grad.clone() for p in net.parameters()])
            merged = []
            for k in range(len(grads[0])):
                g1, g2 = grads[0][k], grads[1][k]
                dot = (g1 * g2).sum()
                if dot < 0:
                    g1 = g1 - dot / g2.norm().pow(2) * g2
                merged.append(g1 + g2)
            opt.zero_grad()
            for p, g in zip(net.parameters(), merged):
                p.grad = g
            opt.step()
    """)


def test_balanced_gradient_norms_raises_no_alarm() -> None:
    check("""
        net = nn.Linear(4, 4)
        heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(2)])
        w = torch.ones(2, requires_grad=True)
        opt = torch.optim.Adam([*net.parameters(), *heads.parameters()])
        ow = torch.optim.Adam([w], lr=0.01)
        initial = None
        for step in range(3):
            h = net(torch.randn(8, 4))
            L = torch.stack([hd(h).pow(2).mean() for hd in heads])
            if initial is None:
                initial = L.detach()
            total = (w.detach() * L).sum()
            opt.zero_grad()
            total.backward(retain_graph=True)
            norms = torch.stack([torch.autograd.grad(w[i] * L[i], net.weight, retain_graph=True, create_graph=True)[0].norm() for i in range(2)])
            target = norms.mean().detach() * (L.detach() / initial)
            wl = (norms - target).abs().sum()
            ow.zero_grad()
            wl.backward(inputs=[w])
            ow.step()
            opt.step()
    """)


def test_a_gradient_reversal_layer_raises_no_alarm() -> None:
    check("""
        class Rev(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, lam):
                ctx.lam = lam
                return x.view_as(x)
            @staticmethod
            def backward(ctx, g):
                return g.neg() * ctx.lam, None
        fe, clf, dom = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)
        opt = torch.optim.SGD([*fe.parameters(), *clf.parameters(), *dom.parameters()], lr=0.1)
        for i in range(3):
            xs, ys, xt = torch.randn(8, 4), torch.randint(0, 3, (8,)), torch.randn(8, 4)
            hs, ht = fe(xs), fe(xt)
            d = dom(Rev.apply(torch.cat([hs, ht]), 0.1))
            loss = F.cross_entropy(clf(hs), ys) + F.cross_entropy(d, torch.cat([torch.zeros(8), torch.ones(8)]).long())
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_tied_weights_with_truncated_backpropagation_raises_no_alarm() -> None:
    check("""
        class LM(nn.Module):
            def __init__(self, v=20, d=8):
                super().__init__()
                self.emb = nn.Embedding(v, d)
                self.rnn = nn.GRU(d, d, batch_first=True)
                self.out = nn.Linear(d, v, bias=False)
                self.out.weight = self.emb.weight
            def forward(self, x, h=None):
                o, h = self.rnn(self.emb(x), h)
                return self.out(o), h
        lm = LM()
        opt = torch.optim.AdamW(lm.parameters(), lr=1e-3)
        h = None
        for i in range(3):
            x = torch.randint(0, 20, (4, 7))
            if h is not None:
                h = h.detach()
            logits, h = lm(x[:, :-1], h)
            loss = F.cross_entropy(logits.reshape(-1, 20), x[:, 1:].reshape(-1))
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
            opt.step()
    """)


def test_a_diffusion_model_raises_no_alarm() -> None:
    check("""
        net = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 4))
        opt = torch.optim.Adam(net.parameters())
        T = 10
        betas = torch.linspace(1e-4, 0.02, T)
        alphas_bar = torch.cumprod(1 - betas, 0)
        for _ in range(3):
            x0 = torch.randn(8, 4)
            t = torch.randint(0, T, (8,))
            noise = torch.randn_like(x0)
            a = alphas_bar[t][:, None]
            xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
            pred = net(torch.cat([xt, t[:, None].float() / T], 1))
            loss = F.mse_loss(pred, noise)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        @torch.no_grad()
        def sample(n):
            x = torch.randn(n, 4)
            for i in reversed(range(T)):
                eps = net(torch.cat([x, torch.full((n, 1), i / T)], 1))
                x = (x - betas[i] / (1 - alphas_bar[i]).sqrt() * eps) / (1 - betas[i]).sqrt()
                if i > 0:
                    x += betas[i].sqrt() * torch.randn_like(x)
            return x
        sample(2)
    """)


def test_a_physics_informed_network_raises_no_alarm() -> None:
    check("""
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        opt = torch.optim.Adam(net.parameters())
        for _ in range(3):
            xt = torch.rand(32, 2, requires_grad=True)
            u = net(xt)
            du = torch.autograd.grad(u, xt, torch.ones_like(u), create_graph=True)[0]
            ux, ut = du[:, :1], du[:, 1:]
            uxx = torch.autograd.grad(ux, xt, torch.ones_like(ux), create_graph=True)[0][:, :1]
            res = ut + u * ux - 0.01 * uxx
            loss = res.pow(2).mean() + net(torch.rand(8, 2)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)


def test_langevin_samples_for_an_energy_model_raises_no_alarm() -> None:
    check("""
        E = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1))
        opt = torch.optim.Adam(E.parameters(), lr=1e-3)
        def sample(n, steps=5):
            x = torch.randn(n, 2, requires_grad=True)
            for p in E.parameters():
                p.requires_grad_(False)
            for _ in range(steps):
                e = E(x).sum()
                g = torch.autograd.grad(e, x)[0]
                x.data -= 0.1 * g
                x.data += 0.01 * torch.randn_like(x)
            for p in E.parameters():
                p.requires_grad_(True)
            return x.detach()
        for _ in range(3):
            real = torch.randn(8, 2) + 2
            fake = sample(8)
            loss = E(real).mean() - E(fake).mean() + 0.1 * (E(real).pow(2) + E(fake).pow(2)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """)
