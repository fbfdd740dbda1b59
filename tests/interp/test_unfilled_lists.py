"""Lists that a loop fills inside of conditions: empty because no path was there, or because nothing ever fills them."""

from __future__ import annotations

from tests.interp.checking import check
from tests.interp.running import refused

BUILT_FROM_A_FILE = """
    import argparse

    def parse(path):
        lines = [line.strip() for line in open(path).read().splitlines()]
        kinds = []
        for line in lines:
            if line.startswith("["):
                kinds.append({})
                kinds[-1]["type"] = line[1:-1].rstrip()
                if kinds[-1]["type"] == "conv":
                    kinds[-1]["norm"] = 0
            else:
                key, value = line.split("=")
                kinds[-1][key] = value
        return kinds

    def make(kinds):
        settings = kinds.pop(0)
        parts = nn.ModuleList()
        for number, kind in enumerate(kinds):
            part = nn.Sequential()
            if kind["type"] == "conv":
                part.add_module("conv", nn.Linear(3, 3))
                if kind["norm"]:
                    part.add_module("norm", nn.LayerNorm(3))
            elif kind["type"] == "pool":
                part.add_module("pool", nn.Identity())
            elif kind["type"] == "head":
                part.add_module("head", nn.Linear(3, 3))
            parts.append(part)
        return settings, parts

    class Net(nn.Module):
        def __init__(self, path):
            super().__init__()
            self.kinds = parse(path)
            self.settings, self.parts = make(self.kinds)

        def forward(self, x):
            outputs = []
            for kind, part in zip(self.kinds, self.parts):
                if kind["type"] in ["conv", "pool"]:
                    x = part(x)
                elif kind["type"] == "route":
                    x = x + 1
                elif kind["type"] == "head":
                    x = part(x)
                    outputs.append(x)
            return outputs

    def run():
        given = argparse.ArgumentParser().parse_args()
        if given.seed != -1:
            torch.manual_seed(given.seed)
        net = Net(given.path)
        if given.verbose:
            print(net)
        if net.settings["optimizer"] in [None, "adam"]:
            optimizer = torch.optim.Adam(net.parameters())
        elif net.settings["optimizer"] == "sgd":
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(given.steps):
            total = torch.zeros(1)
            for output in net(torch.randn(2, 3)):
                total += output.mean()
            total.backward()
            if step % net.settings["often"] == 0:
                rate = 0.1
                if step < net.settings["burn"]:
                    rate *= step
                else:
                    for border, value in net.settings["rates"]:
                        if step > border:
                            rate *= value
                optimizer.step()
                optimizer.zero_grad()
            if given.verbose:
                print(total)
            if step % given.often == 0:
                torch.save(net, "net")

    if __name__ == "__main__":
        run()
"""


def test_a_list_that_some_arm_of_an_unknown_file_fills_is_not_taken_for_empty() -> None:
    check(BUILT_FROM_A_FILE)


NEVER_FILLED = """
    net = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def outputs_of(x):
        outputs = []
        for kind in ["body", "body"]:
            if kind == "head":
                outputs.append(net(x))
        return outputs

    for step in range(3):
        total = torch.zeros(1)
        for output in outputs_of(torch.randn(2, 3)):
            total += output.mean()
        optimizer.zero_grad()
        total.backward()  # GS205
        optimizer.step()
"""


def test_a_list_that_is_known_to_stay_empty_brings_no_graph() -> None:
    refused(NEVER_FILLED, "does not require grad")
