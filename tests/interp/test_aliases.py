"""Aliases taken for copies: names, containers, snapshots, arguments."""

from __future__ import annotations

from tests.interp.checking import check


def test_a_shortcut_changed_by_an_activation_is_reported() -> None:
    check("""
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
            def forward(self, x):
                shortcut = x
                x = F.relu(x, inplace=True)  # GS107
                x = self.fc(x)
                return x + shortcut
        net = nn.Sequential(nn.Linear(4, 4), Block())
        net(torch.randn(2, 4)).sum().backward()
    """)


def test_a_shortcut_changed_by_a_layer_is_reported_where_the_layer_is_made() -> None:
    check("""
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.act = nn.ReLU(inplace=True)  # GS107
                self.fc = nn.Linear(4, 4)
            def forward(self, x):
                identity = x
                out = self.act(x)
                out = self.fc(out)
                out += identity
                return out
        net = nn.Sequential(nn.Linear(4, 4), Block())
        net(torch.randn(2, 4)).sum().backward()
    """)


def test_a_residual_block_is_left_alone() -> None:
    check("""
        class Basic(nn.Module):
            def __init__(self, c):
                super().__init__()
                self.conv1, self.bn1 = nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c)
                self.conv2, self.bn2 = nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c)
                self.relu = nn.ReLU(inplace=True)
            def forward(self, x):
                identity = x
                out = self.relu(self.bn1(self.conv1(x)))
                out = self.bn2(self.conv2(out))
                out += identity
                return self.relu(out)
        net = nn.Sequential(nn.Conv2d(1, 4, 3), Basic(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            F.cross_entropy(net(torch.randn(2, 1, 8, 8)), torch.tensor([0, 1])).backward()
            opt.step()
    """)


def test_noise_added_to_the_clean_data_is_reported() -> None:
    check("""
        clean = torch.rand(16, 8)
        net = nn.Linear(8, 8)
        noisy = clean
        noisy += 0.1 * torch.randn_like(clean)  # GS107
        loss = F.mse_loss(net(noisy), clean)
        loss.backward()
    """)


def test_a_mask_written_into_the_target_is_reported() -> None:
    check("""
        tokens = torch.rand(16, 8)
        net = nn.Linear(8, 8)
        masked = tokens
        masked[:, 2:4] = 0.0  # GS107
        out = net(masked)
        loss = (out - tokens).pow(2)[:, 2:4].mean()
        loss.backward()
    """)


def test_a_helper_that_changes_its_argument_is_reported() -> None:
    check("""
        def normalise(x):
            x -= x.mean(0)  # GS107
            x /= x.std(0) + 1e-6
            return x
        raw = torch.randn(20, 3) * 4 + 1
        net = nn.Linear(3, 3)
        z = normalise(raw)
        loss = F.mse_loss(net(z), raw)
        loss.backward()
    """)


def test_a_helper_whose_result_replaces_its_argument_is_left_alone() -> None:
    check("""
        def normalise(x):
            x -= x.mean(0)
            x /= x.std(0) + 1e-6
            return x
        raw = torch.randn(20, 3) * 4 + 1
        net = nn.Linear(3, 3)
        raw = normalise(raw)
        F.mse_loss(net(raw), raw).backward()
        out = normalise(torch.randn(20, 3))
    """)


def test_a_helper_named_as_in_place_is_left_alone() -> None:
    check("""
        def clip_(x, lo, hi):
            x.clamp_(lo, hi)
            return x
        a = torch.randn(3)
        b = clip_(a, -1, 1)
        w = torch.randn(3, requires_grad=True)
        (w * a).sum().backward()
    """)


def test_weights_of_the_step_before_are_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            prev = net.weight.detach()  # GS107
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
            print((net.weight.detach() - prev).abs().max())
    """)


def test_detached_weights_taken_for_a_snapshot_are_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        before = [p.detach() for p in net.parameters()]  # GS107
        net(torch.randn(5, 3)).pow(2).mean().backward()
        opt.step()
        moved = [(p.detach() - b).norm() for p, b in zip(net.parameters(), before)]
        print(moved)
    """)


def test_data_taken_for_a_snapshot_is_reported() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1)
        old = w.data  # GS107
        (w * w).sum().backward()
        opt.step()
        print((w.data - old).norm())
    """)


def test_a_state_dict_taken_for_the_best_is_reported() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        best, best_loss = None, float("inf")
        for _ in range(4):
            loss = net(torch.randn(5, 3)).pow(2).mean()
            if loss.item() < best_loss:
                best_loss, best = loss.item(), net.state_dict()  # GS107
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.load_state_dict(best)
    """)


def test_one_frame_stored_many_times_is_reported() -> None:
    check("""
        from collections import deque
        frame = torch.zeros(3)
        hist = deque(maxlen=3)
        for t in range(5):
            frame += torch.randn(3)  # GS107
            hist.append(frame)
        net = nn.Linear(3, 1)
        net(torch.stack(list(hist))).mean().backward()
    """)


def test_cloned_frames_are_left_alone() -> None:
    check("""
        from collections import deque
        state = torch.zeros(3)
        hist = deque(maxlen=3)
        for t in range(5):
            state += torch.randn(3)
            hist.append(state.clone())
        print(torch.stack(list(hist)).mean(0))
    """)


def test_one_buffer_under_many_keys_is_reported() -> None:
    check("""
        cell = nn.GRUCell(3, 5)
        h = torch.zeros(2, 5)
        trace = {}
        buf = torch.zeros(2, 5)
        for t in range(4):
            h = cell(torch.randn(2, 3), h)
            buf.copy_(h)  # GS107
            trace[t] = buf
        out = torch.stack([trace[t] for t in range(4)])
        out.pow(2).mean().backward()
    """)


def test_one_row_stored_many_times_is_reported() -> None:
    check("""
        class Recorder:
            def __init__(self):
                self.rows = []
                self.row = torch.zeros(3)
            def add(self, v):
                self.row[:] = v  # GS107
                self.rows.append(self.row)
            def table(self):
                return torch.stack(self.rows)
        rec = Recorder()
        w = torch.randn(3, requires_grad=True)
        for k in range(3):
            rec.add(w * k)
        rec.table().sum().backward()
    """)


def test_cloned_rows_are_left_alone() -> None:
    check("""
        class Recorder:
            def __init__(self):
                self.rows = []
                self.row = torch.zeros(3)
            def add(self, v):
                self.row = v
                self.rows.append(self.row.clone())
            def table(self):
                return torch.stack(self.rows)
        rec = Recorder()
        w = torch.randn(3, requires_grad=True)
        for k in range(3):
            rec.add(w * k)
        rec.table().sum().backward()
    """)


def test_a_multiplied_list_is_reported() -> None:
    check("""
        w = torch.randn(3, requires_grad=True)
        rows = [torch.zeros(3)] * 4
        for i in range(4):
            rows[i] += w * i  # GS107
        torch.stack(rows).pow(2).sum().backward()
    """)


def test_a_detached_value_clamped_in_place_is_reported() -> None:
    check("""
        class Critic(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
            def forward(self, s, a):
                return self.net(torch.cat([s, a], -1)).squeeze(-1)
        critic = Critic()
        s, a, r = torch.randn(8, 4), torch.randn(8, 2), torch.rand(8)
        q = critic(s, a)
        clipped = q.detach()
        clipped.clamp_(-1, 1)  # GS107
        loss = F.mse_loss(q, r) + (q - clipped).abs().mean()
        loss.backward()
        GRADS = {n: p.grad for n, p in critic.named_parameters()}
    """)


def test_detached_statistics_changed_in_place_are_reported() -> None:
    check("""
        enc = nn.Linear(5, 3)
        x = torch.randn(10, 5)
        z = enc(x)
        stats = z.detach()
        stats -= stats.mean(0)  # GS107
        stats /= stats.std(0) + 1e-5
        loss = (z - stats).pow(2).mean()
        loss.backward()
        GRADS = {"w": enc.weight.grad}
    """)


def test_a_detached_clone_is_left_alone() -> None:
    check("""
        enc = nn.Linear(5, 3)
        x = torch.randn(10, 5)
        z = enc(x)
        stats = z.detach().clone()
        stats -= stats.mean(0)
        loss = (z - stats).pow(2).mean()
        loss.backward()
    """)


def test_data_written_after_it_was_kept_is_reported() -> None:
    check("""
        net = nn.Linear(4, 4)
        x = torch.randn(3, 4)
        h = torch.tanh(net(x))
        mask = h.data
        mask[mask < 0] = 0.0  # GS104
        loss = (h * 2).sum()
        loss.backward()
        GRADS = {"w": net.weight.grad}
    """)


def test_an_array_written_after_it_was_kept_is_reported() -> None:
    check("""
        net = nn.Linear(4, 4)
        h = torch.sigmoid(net(torch.randn(3, 4)))
        arr = h.detach().numpy()
        arr[arr > 0.5] = 1.0  # GS104
        h.sum().backward()
    """)


def test_a_slice_copied_before_the_shift_is_left_alone() -> None:
    check("""
        w = torch.randn(5, requires_grad=True)
        buf = torch.zeros(6)
        for t in range(3):
            last = buf[-1]
            buf[1:] = buf[:-1].clone()
            buf[0] = (w * t).sum()
        print(buf)
        buf.sum().backward()
    """)


def test_a_list_of_parameters_is_left_alone() -> None:
    check("""
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        best = [p for p in net.parameters()]
        for _ in range(2):
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
    """)


def test_a_name_that_gets_a_copy_later_may_begin_as_the_model() -> None:
    check("""
        import copy
        model = nn.Linear(5, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
        best = float("inf")
        best_model = model
        for epoch in range(4):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 5)).pow(2).mean()
            loss.backward()
            optimizer.step()
            if loss.item() < best:
                best = loss.item()
                best_model = copy.deepcopy(model)
        print(best_model(torch.ones(1, 5)))
    """)


def test_a_name_that_never_gets_a_copy_is_the_model() -> None:
    check("""
        model = nn.Linear(5, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
        best = float("inf")
        best_model = None
        for epoch in range(4):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 5)).pow(2).mean()
            loss.backward()
            optimizer.step()
            if loss.item() < best:
                best = loss.item()
                best_model = model  # GS514
        print(best_model(torch.ones(1, 5)))
    """)


def test_an_argument_has_two_names() -> None:
    check(
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 4)
    def forward(self, given, time):
        h = given
        h.clamp_(min=0)  # GS107
        h = self.norm(h)
        return given + h
class Filling(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 4)
    def forward(self, given, time):
        h = given.clone()
        h.clamp_(min=0)
        h = self.norm(h)
        return given + h
class Renamed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 4)
    def forward(self, given, time):
        h = given
        h.clamp_(min=0)
        return self.norm(h)
"""
    )


AGENT = """
class Agent:
    def __init__(self, net, target, lr):
        self.net = net
        {}
        self.optimizer = torch.optim.Adam(net.parameters(), lr)

    def update(self, batch):
        s, a, r, later = batch
        with torch.no_grad():
            goal = r + 0.99 * self.target(later).max(1)[0]
        loss = (self.net(s).gather(1, a).squeeze() - goal).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


def test_a_target_that_is_the_unknown_network_itself_is_reported() -> None:
    check(AGENT.format("self.target = net  # GS514"))
    check(AGENT.format("self.target = target"))
    check("import copy\n" + AGENT.format("self.target = copy.deepcopy(net)").lstrip())


BEST = """
def train(model, loader, optimizer, epochs):
    least, best_model = 1e9, None
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if loss.item() < least:
            least, best_model = loss.item(), {}
    return best_model
"""


def test_the_best_model_of_a_pair_that_is_assigned_is_reported() -> None:
    check(BEST.format("model  # GS514"))
    check("import copy\n" + BEST.format("copy.deepcopy(model)").lstrip())


def test_a_function_that_asks_only_about_the_shape_does_not_read_what_was_overwritten() -> None:
    check("""
        def rows_of(embeds, other=None):
            given = other if other is not None else embeds
            return given.shape[0]
        def make_mask(config, embeds, length):
            rows = rows_of(embeds)
            return torch.ones(rows, length, device=embeds.device)
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
            def forward(self, x):
                hidden = x
                hidden = F.dropout(hidden, 0.5, inplace=True)
                mask = make_mask(config=None, embeds=x, length=4)
                return self.fc(hidden) * mask
        net = nn.Sequential(nn.Linear(4, 4), Block())
        net(torch.randn(2, 4)).sum().backward()
    """)


def test_a_function_that_reads_more_than_the_shape_reads_what_was_overwritten() -> None:
    for uses in ("return embeds * 2", "keep = embeds\n            return keep + 1", "return other(embeds)"):
        check(f"""
        def other(given):
            return given.abs()
        def make_mask(config, embeds, length):
            rows = embeds.shape[0]
            {uses}
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
            def forward(self, x):
                hidden = x
                hidden = F.dropout(hidden, 0.5, inplace=True)  # GS107
                mask = make_mask(config=None, embeds=x, length=4)
                return self.fc(hidden) * mask
        net = nn.Sequential(nn.Linear(4, 4), Block())
        net(torch.randn(2, 4)).sum().backward()
        """)
