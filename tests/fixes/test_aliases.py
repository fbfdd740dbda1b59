"""Who else sees a tensor decides whether a name may be given a new one."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradsight.fixes.aliases import standing
from gradsight.fixes.tree import Tree


def check(body: str, is_private: bool, parameters: str = "a, b") -> None:
    """The write is the line that ends with `# write`; the name it starts with is asked about."""
    text = f"def f({parameters}):\n" + "".join(f"    {line}\n" for line in dedent(body).strip().split("\n"))
    tree = Tree.parse(text)
    assert tree is not None
    line = next(number for number, line in enumerate(text.split("\n"), 1) if line.endswith("# write"))
    statement = next(
        node for node in __import__("ast").walk(tree.module) if getattr(node, "lineno", 0) == line
        and isinstance(node, __import__("ast").stmt)
    )  # fmt: skip
    name = text.split("\n")[line - 1].split()[0].partition(".")[0].partition("[")[0]
    found = standing(tree, name, statement)
    assert found.is_private is is_private, found


@pytest.mark.parametrize(
    "body",
    [
        "y = a.exp()\ny *= 2  # write\nreturn y",
        "y = a.exp()\nz = y * 3\ny *= 2  # write\nreturn y + z",
        "old = a\ny = torch.tanh(a)\ny += old  # write\nreturn y",
        "left, right = torch.split(net(a), 2)\nleft += 1  # write\nreturn left * right",
        "y = net(a)\nfor t in range(3):\n    y = cell(y)\n    y *= 2  # write\nreturn y",
        "y = net(a)\nview = y[0]\ny *= 2  # write\nreturn y",
        "if b:\n    y = a.exp()\nelse:\n    y = a.sin()\ny *= 2  # write\nreturn y",
        "y = a.exp()\ny = y.view(-1)\ny *= 2  # write\nreturn y",
    ],
)
def test_a_tensor_that_only_one_name_holds_is_private(body: str) -> None:
    check(body, True)


@pytest.mark.parametrize(
    "body",
    [
        "a *= 2  # write\nreturn a",
        "y = a.view(-1)\ny *= 2  # write\nreturn y",
        "y = a.exp()\nz = y\ny *= 2  # write\nreturn y + z",
        "y = a.exp()\nview = y[0]\ny *= 2  # write\nreturn y + view",
        "y = a.exp()\nkept.append(y)\ny *= 2  # write\nreturn y",
        "y = a.exp()\nself.last = y\ny *= 2  # write\nreturn y",
        "y = self.buffer\ny *= 2  # write\nreturn y",
        "for y in a:\n    y *= 2  # write\n    print(y)\nreturn a",
        "y = net(a)\nfor t in range(3):\n    y *= 2  # write\n    kept.append(y)\nreturn y",
        "y = known\ny *= 2  # write\nreturn y",
        "y = net(a)\npair = (y, 1)\ny *= 2  # write\nreturn pair",
        "y = net(a) if b else a\ny *= 2  # write\nreturn y",
        "base = net(a)\nrow = base[0]\nrow *= 2  # write\nreturn base + row",
        "global y\ny = a\ny *= 2  # write",
    ],
)
def test_a_tensor_that_somebody_else_may_see_is_not(body: str) -> None:
    check(body, False)
