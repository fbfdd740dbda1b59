"""Write out of place: each in-place form, and everything around it untouched."""

from __future__ import annotations

import pytest

from gradsight.fixing import rewrites_at
from gradsight.model import Source, Span
from tests.fixes.checking import check_rewrite, rewritten


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("x *= 3", "x = x * 3"),
        ("x += a * b", "x = x + a * b"),
        ("x *= a + b", "x = x * (a + b)"),
        ("x -= a - b", "x = x - (a - b)"),
        ("x /= (a + b)", "x = x / (a + b)"),
        ("x **= 2", "x = x ** 2"),
        ("x @= w", "x = x @ w"),
        ("x //= 2", "x = x // 2"),
        ("x *= a if b else c", "x = x * (a if b else c)"),
        ("x *= -1", "x = x * -1"),
        ("x  *=  3  # thrice", "x  = x *  3  # thrice"),
        ("x *= (  # why\n    a\n)", "x = x * (  # why\n    a\n)"),
        ("x.mul_(w)", "x = x * w"),
        ("x.mul_(a + b)", "x = x * (a + b)"),
        ("x.sub_(y, alpha=2)", "x = x.sub(y, alpha=2)"),
        ("x.relu_()", "x = x.relu()"),
        ("x.masked_fill_(mask, 0.0)", "x = x.masked_fill(mask, 0.0)"),
        ("x.clamp_(min=0)", "x = x.clamp(min=0)"),
        ("x.fill_diagonal_(0)", "x = x.clone().fill_diagonal_(0)"),
        ("x.zero_()", "x = x.clone().zero_()"),
        ("x.gt_(0)", "x = x.clone().gt_(0)"),
        ("x.copy_(other)", "x = x.clone().copy_(other)"),
        ("x.mul_(a).add_(b)", "x = x.mul(a).add(b)"),
        ("x.index_add_(\n    0, i,  # rows\n    v,\n)", "x = x.index_add(\n    0, i,  # rows\n    v,\n)"),
        ("x = x.mul_(w)", "x = x * w"),
        ("F.relu(x, inplace=True)", "x = F.relu(x)"),
        ("x = F.dropout(x, 0.5, inplace=True)", "x = F.dropout(x, 0.5)"),
        ("x = F.dropout(\n    x,\n    p=0.5,  # half\n    inplace=True,\n)", "x = F.dropout(\n    x,\n    p=0.5,  # half\n)"),
        ("torch.relu_(x)", "x = torch.relu(x)"),
        ("torch.mul(a, b, out=x)", "x = torch.mul(a, b)"),
        ("x[0] = 1", "x = x.clone()\nx[0] = 1"),
        ("x[:, 1] += v", "x = x.clone()\nx[:, 1] += v"),
        ("x.diagonal().add_(1)", "x = x.clone()\nx.diagonal().add_(1)"),
        ("x[0].mul_(2); print(1)", "x = x.clone()\nx[0].mul_(2); print(1)"),
        ("if a: x[0] = 1", "if a: x = x.clone(); x[0] = 1"),
        ("y = x.add_(1)", "x = x + 1\ny = x"),
        ("F.relu(x, True)", "x = F.relu(x)"),
        ("F.relu(input=x, inplace=True)", "x = F.relu(input=x)"),
        ("x = F.dropout(x, 0.5, True, True)  # here too", "x = F.dropout(x, 0.5, True)  # here too"),
        ("torch.Tensor.mul_(x, 2)", "x = torch.Tensor.mul(x, 2)"),
        ("torch.fill_(x, 2)", "x = torch.fill_(x.clone(), 2)"),
        ("torch.arange(5, out=x)", "x = torch.arange(5, dtype=x.dtype, device=x.device)"),
        ("x.T.mul_(2)", "x = x.clone()\nx.T.mul_(2)"),
        ("x.data.mul_(3)", "x.data = x.data * 3"),
        ("x.data *= 3", "x.data = x.data * 3"),
        ("x.data = x.data.mul_(3)", "x.data = x.data * 3"),
        ("x.data[0] = 1", "x.data = x.data.clone()\nx.data[0] = 1"),
        ("x.detach().zero_()", "x.data = x.data.clone()\nx.detach().zero_()"),
        ("y = nn.init.zeros_(x)", "x.data = nn.init.zeros_(x.detach().clone())\ny = x"),
    ],
)  # fmt: skip
def test_a_form_is_written_out_of_place(statement: str, after: str) -> None:
    check_rewrite(statement, after)


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("x.grad.zero_()", "x.grad = x.grad.clone().zero_()"),
        ("x.grad[0] = 0", "x.grad = x.grad.clone()\nx.grad[0] = 0"),
        ("layer.weight.data.mul_(2)", "layer.weight.data = layer.weight.data * 2"),
        ("nn.init.ones_(layer.weight)", "layer.weight.data = nn.init.ones_(layer.weight.detach().clone())"),
        ("torch.gt(a, b, out=x)", "x = torch.gt(a, b)"),
    ],
)
def test_what_others_may_hold_is_written_out_of_place_and_not_called_safe(statement: str, after: str) -> None:
    check_rewrite(statement, after, safety="unsafe")


@pytest.mark.parametrize("behind", ["", "same = x\n", "part = x[0]\n"])
def test_who_else_reads_the_memory_decides_about_safety(behind: str) -> None:
    text = f"import torch\nx = make()\n{behind}x.data.mul_(3)\nprint(x, same, part)\n"
    ((_, safety),) = rewritten(text, text.count("\n") - 1)
    assert safety == ("unsafe" if behind else "safe")


def test_two_writes_of_one_statement_become_one_assignment() -> None:
    check_rewrite("x.mul_(2), y.add_(1)", "x, y = x * 2, y + 1", before="x, y = make(), make()\n")


def test_a_layer_loses_its_flag() -> None:
    text = "from torch import nn\nnet = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))\n"
    assert rewritten(text, 2) == [(text.replace("inplace=True", ""), "safe")]


@pytest.mark.parametrize(
    "statement",
    [
        "count += 1",
        "text += 'more'",
        "names += ['a']",
        "table['k'] = 1",
        "items[0] = 1",
        "layer.requires_grad_()",
        "scaler.unscale_(optimizer)",
        "x.resize_(3)",
        "x.set_(other)",
        "optimizer.step()",
        "nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
        "settings['lr'] = 0.1",
        "F.relu(x, inplace=False)",
        "F.relu(x, False)",
        "F.relu(x, inplace=flag)",
    ],
)
def test_what_writes_no_tensor_is_left_alone(statement: str) -> None:
    before = "from torch import nn\ncount = 0\ntext = ''\nnames = []\ntable = {}\nitems = [1, 2]\n"
    assert rewritten(before + statement + "\n", before.count("\n") + 1) == []


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends_are_kept(newline: str) -> None:
    lines = ["import torch", "def f(a):", "\tx = a.exp()", "\tx[0] = 1  # 😀", "\treturn x", ""]
    (result, _) = rewritten(newline.join(lines), 4)[0]
    assert result == newline.join([*lines[:3], "\tx = x.clone()", *lines[3:]])


def test_columns_count_characters_and_not_bytes() -> None:
    text = "import torch\nx = make()\nname = '😀é'; x *= 2; print(x)\n"
    assert rewritten(text, 3, column=16) == [(text.replace("x *= 2", "x = x * 2"), "safe")]


def test_a_name_of_an_outer_scope_is_not_rebound() -> None:
    text = "import torch\nx = make()\ndef f():\n    x.mul_(2)\n    return x\n"
    assert rewritten(text, 4) == []


def test_a_text_that_does_not_parse_has_no_rewrite() -> None:
    assert rewritten("x *= 2\ndef f(:\n", 1) == []


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("y = 1; x.mul_(2); print(x)", "x = x * 2"),
        ("x = F.dropout(\n    x,  # all\n    inplace=True,\n)", "x = F.dropout(x)"),
        ("if True:\n    y = x.add_(1)", "x = x + 1"),
        ("x.index_add_(\n    0, i,\n    v)", "x = x.index_add(0, i, v)"),
    ],
)
def test_a_title_tells_the_new_statement_alone(statement: str, told: str) -> None:
    ahead = "import torch\nimport torch.nn.functional as F\nx = make()\n"
    text = f"{ahead}{statement}\nprint(x)\n"
    line = 3 + statement.count("\n") + 1 if "if" in statement else 4
    column = statement.index("x.") if line == 4 and "x." in statement else 4
    (fix,) = rewrites_at(Source("program.py", text), Span(line, column, line, column))
    assert fix.title == f"rewrite as `{told}`"


@pytest.mark.parametrize(
    ("before", "statement"),
    [
        ("", "group['lr'] = 0.1"),
        ("", "optimizer.param_groups[0]['lr'] = 0.1"),
        ("state = net.state_dict()\n", "state[k] += v"),
        ("import numpy as np\nx = np.zeros(3)\n", "x[:] = 1"),
        ("x = make().numpy()\n", "x[0] = 1"),
        ("self.items = []\n", "self.items[i] = v"),
        ("book.items()\n", "book[name] = v"),
        ("", "book[name] = (low, high)"),
        ("", "book[name] = 'text'"),
        ("x = [[None] * 3 for _ in range(3)]\n", "x[0][1] = make()"),
    ],
)
def test_what_is_no_tensor_is_not_cloned(before: str, statement: str) -> None:
    ahead = f"import torch\nx = make()\n{before}"
    assert rewritten(f"{ahead}{statement}\nprint(x)\n", ahead.count("\n") + 1) == []


def test_an_entry_of_a_dict_is_cloned_by_itself() -> None:
    check_rewrite("x['k'][0] = 1", "x['k'] = x['k'].clone()\nx['k'][0] = 1", safety="unsafe")
