"""`make test-nodes`: a watch under torchrun on two nodes, which are network namespaces of this machine.

Each node has a host name and an address of its own, and they see each other over one virtual cable; torchrun meets on the
first.  The program trains one model with DDP on all ranks and another one on some.  What must come out is one report, on
rank 0, that says once what all ranks say, by rank what is said by some, and on how many nodes they were.

Namespaces are made by `ip` (iproute2) and need the rights of root.  Where they cannot be made the command says why and ends
with status 3.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

NODES = ("gradsight-a", "gradsight-b")
CABLE = ("gs-cable-a", "gs-cable-b")
ADDRESS = "10.177.31.{}"
PER_NODE = 2
CANNOT = 3
PROGRAM = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gradsight

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x):
        return self.used(x)


net, head = DistributedDataParallel(Net(), find_unused_parameters=True), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
with gradsight.watch():
    for _ in range(3):
        optimizer.zero_grad()
        loss = net(torch.randn(4, 3)).mean()
        if rank != 3:
            loss = loss + head(torch.randn(4, 3)).mean()
        loss.backward()
        optimizer.step()
total = sum(float(each.detach().sum()) for each in net.parameters())
print(f"rank {rank}: parameters sum to {total:.6f}", flush=True)
dist.destroy_process_group()
"""
EXPECTED = (
    "all ranks: `net.module.unused.weight`, `net.module.unused.bias`: no gradient in any of 3 steps",
    "rank 3: `head.weight`, `head.bias`: no gradient in any of 3 steps",
    "3 optimizer steps watched in each of 4 ranks on 2 nodes",
)


def main() -> int:
    reason = obstacle()
    if reason:
        print(f"two nodes cannot be made here: {reason}")
        return CANNOT
    with tempfile.TemporaryDirectory() as folder, namespaces():
        program = Path(folder) / "train.py"
        program.write_text(PROGRAM, "utf-8")
        said = run(program)
    missing = [line for line in EXPECTED if line not in said]
    reports = said.count("optimizer steps watched in each of")
    print(said)
    if missing or reports != 1:
        print(f"{reports} reports; not said: {missing}")
        return 1
    print("two nodes, four ranks, one report")
    return 0


def obstacle() -> str:
    """Why there can be no namespaces; iproute2 is installed if it is missing."""
    if not sys.platform.startswith("linux"):
        return "this is not Linux"
    if os.geteuid() != 0:
        return "network namespaces need the rights of root"
    if shutil.which("ip") is None:
        if shutil.which("apt-get") is None:
            return "there is no `ip`, and no apt-get to install it with"
        done = subprocess.run(
            ["apt-get", "install", "--yes", "--quiet", "iproute2"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or shutil.which("ip") is None:
            return f"iproute2 cannot be installed: {done.stderr.strip()[-300:]}"
    made = subprocess.run(["ip", "netns", "add", NODES[0]], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return made.stderr.strip()
    _ip("netns", "delete", NODES[0])
    return ""


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    """Two nodes with a cable between them, gone afterwards."""
    try:
        for node in NODES:
            _ip("netns", "add", node)
        _ip("link", "add", CABLE[0], "type", "veth", "peer", "name", CABLE[1])
        for number, (node, end) in enumerate(zip(NODES, CABLE, strict=True), 1):
            _ip("link", "set", end, "netns", node)
            for command in (
                ("link", "set", "lo", "up"),
                ("address", "add", f"{ADDRESS.format(number)}/24", "dev", end),
                ("link", "set", end, "up"),
            ):
                _ip("-netns", node, *command)
        yield
    finally:
        for node in NODES:
            subprocess.run(["ip", "netns", "delete", node], capture_output=True, check=False)


def run(program: Path) -> str:
    """What all ranks print."""
    started = [
        subprocess.Popen(
            command(program, number, node, end),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "GLOO_SOCKET_IFNAME": end, "OMP_NUM_THREADS": "1"},
        )
        for number, (node, end) in enumerate(zip(NODES, CABLE, strict=True))
    ]
    try:
        return "\n".join(process.communicate(timeout=900)[0] for process in started)
    finally:
        for process in started:
            process.kill()


def command(program: Path, number: int, node: str, end: str) -> list[str]:
    """The launcher of one node, under a host name of its own."""
    launcher = [
        sys.executable, "-m", "torch.distributed.run",
        f"--nnodes={len(NODES)}", f"--nproc-per-node={PER_NODE}",
        "--rdzv-backend=c10d", "--rdzv-id=gradsight", f"--rdzv-endpoint={ADDRESS.format(1)}:29477",
        f"--rdzv-conf=is_host={int(number == 0)}", f"--local-addr={ADDRESS.format(number + 1)}", str(program),
    ]  # fmt: skip
    name = 'hostname "$0" && exec "$@"'
    return ["ip", "netns", "exec", node, "unshare", "--uts", "sh", "-c", name, node, *launcher]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
