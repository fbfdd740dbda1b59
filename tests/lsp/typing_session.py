"""A user who types at random: inserts, deletes, pastes, breaks and repairs, in texts that are hard to count in."""

from __future__ import annotations

import random

from tests.lsp.editor import Editor

SNIPPETS = [
    "y = x.exp()\n", "y *= 3\n", "    return x\n", "def f(x):\n    return x.relu_()\n", "(", ")", '"""', "'", "# 😀 é\n",
    "\t", "\r\n", "\n", "x = torch.ones(3, requires_grad=True)\n", "y.sum().backward()\n", "𝒙 = 1\n", "漢字 = '字'\r\n", ":",
    "class Net(nn.Module):\n    def forward(self, x):\n        x += 1\n        return x\n", " ", "\x0c", "\u2028", "if x:\n",
]  # fmt: skip


def type_at_random(editor: Editor, uri: str, edits: int, seed: int) -> None:
    """Send this many edits, several to a message now and then, without waiting for anything."""
    rng = random.Random(seed)
    original = editor.texts[uri]
    done = 0
    while done < edits:
        count = rng.choice([1, 1, 1, 1, 2, 3])
        for _ in range(count):
            text = editor.texts[uri]
            if len(text) > len(original) + 3000 or rng.random() < 0.002:
                editor.replace(uri, original)
            else:
                editor.change(uri, *_edits(rng, text))
            done += 1
        if rng.random() < 0.05:
            place = rng.randrange(len(editor.texts[uri]) + 1)
            editor.ask("textDocument/hover", _place(editor, uri, place))
        if rng.random() < 0.02:
            asked = {"range": editor.range(uri, 0, _whole(editor, uri)), "context": {"diagnostics": []}}
            editor.ask("textDocument/codeAction", {"textDocument": {"uri": uri}, **asked})


def _edits(rng: random.Random, text: str) -> list[tuple[int, int, str]]:
    """One edit, or two in one message; places inside CR LF are left to nobody."""
    start = _between(rng, text)
    if rng.random() < 0.5:
        return [(start, start, rng.choice(SNIPPETS) if rng.random() < 0.5 else rng.choice("xy=+*_. 1\n😀"))]
    end = _snap(text, min(len(text), start + rng.choice([1, 1, 2, 5, 40])))
    return [(start, max(start, end), rng.choice(["", "", "z", "\n"]))]


def _between(rng: random.Random, text: str) -> int:
    return _snap(text, rng.randrange(len(text) + 1))


def _snap(text: str, place: int) -> int:
    """Never between the two characters that end one line."""
    return place - 1 if text[place - 1 : place + 1] == "\r\n" else place


def _place(editor: Editor, uri: str, offset: int) -> dict[str, object]:
    return {"textDocument": {"uri": uri}, "position": editor.position(uri, _snap(editor.texts[uri], offset))}


def _whole(editor: Editor, uri: str) -> int:
    return _snap(editor.texts[uri], len(editor.texts[uri]))
