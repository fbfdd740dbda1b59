"""One vocabulary for whoever reads what GradSight says: torch's words, whole sentences, messages that are taken in at once."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from gradsight.analysis import analyze
from gradsight.fixes.titles import CHANGES
from gradsight.model.finding import Finding
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.rules import ALL
from tests.house.tree import ROOT
from tests.rules.pages import blocks_of

LONGEST_MESSAGE = 140
LONGEST_RELATED = 90
USUAL_MESSAGE = 80
RIDDLES = re.compile(
    r"\bkept for backward|\bkeeps? (?:its|an|a|the|them|it|nothing|only)\b[^.:]*\bfor backward|\brounds\b|\b(?:each|every|previous|next|last|this|the|training|new) round\b|\banew\b|\btaken to be\b"
    r"|\bgone through\b|\bout of place\b|\bthe house\b|\brooms?\b|\brepair(?:s|ed)?\b|\bremed(?:y|ies)\b|\bwhoever\b|\bsomebody\b"
    r"|(?<!there )(?<!where )\b(?:is|are|was|were) no (?!longer\b|such\b|more\b|better\b)|\bwithout grad mode\b|\bnobody (?:calls|reads|trains|steps)\b"
    r"|\bthe (?:iteration|call|step) before\b|\bnot looked at\b|\bleave \w+ \w+ away\b|\bmay change results\b"
    r"|\bof one's own\b|\btold\b|\bname for it\b|\bin the same notation\b|\bof weight\b(?! )|\bDetected\b|!",
    re.IGNORECASE,
)
INTERNAL_NAMES = re.compile(r"`(?:index_put_|native_\w+|_softmax|addmm|aten\.\w+)`")
CODE = re.compile(r"`[^`]*`")
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "client/media").rglob("*.md"),
    ]
)
BARE_CODE = re.compile(r"\w\(|\b\w+_\w*\b|;|\w\.\w")


def said() -> list[Finding]:
    """Every finding of every example in the manual."""
    found: list[Finding] = []
    for rule in ALL:
        for block in blocks_of(rule):
            report = analyze(Source(block.path, block.bare_text()), Settings(hints=True))
            found += report.findings
    return found


SAID = said()


def test_a_message_is_one_line_that_is_taken_in_at_once() -> None:
    lengths = [len(finding.message) for finding in SAID]
    assert not [finding.message for finding in SAID if len(finding.message) > LONGEST_MESSAGE]
    assert median(lengths) <= USUAL_MESSAGE


def test_a_message_about_very_long_names_is_still_one_short_line() -> None:
    long = "activation_of_the_second_projection_of_the_decoder_" * 2
    program = (
        f"import torch\nclass {long.title()}(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        x.mul_(2)\n        return x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g, g\n"
        f"w = torch.ones(3, requires_grad=True)\n{long} = w.exp()\n{long} *= {long}.mean() + {long}.std()\n"
        f"{long}.sum().backward()\n{long.title()}.apply(w * 2).sum().backward()\n"
    )
    found = analyze(Source("long.py", program), Settings()).findings
    assert {"GS101", "GS701", "GS703"} <= {finding.code for finding in found}
    assert not [finding.message for finding in found if len(finding.message) > LONGEST_MESSAGE]
    assert all("…" in finding.message for finding in found)


def test_messages_and_trails_begin_small_and_end_without_a_full_stop() -> None:
    texts = [finding.message for finding in SAID] + [
        step.message for finding in SAID for step in finding.related
    ]
    assert not [text for text in set(texts) if not re.match(r"[a-z`]", text) or text.endswith((".", " "))]


def test_messages_and_trails_hold_no_riddle() -> None:
    texts = {finding.message for finding in SAID} | {
        step.message for finding in SAID for step in finding.related
    }
    assert not [text for text in sorted(texts) if riddles(text)]
    assert not [text for text in sorted(texts) if INTERNAL_NAMES.search(text)]
    assert not [text for text in sorted(texts) if len(text) > LONGEST_MESSAGE]


def test_code_in_messages_and_trails_is_marked_as_code() -> None:
    texts = {finding.message for finding in SAID} | {
        step.message for finding in SAID for step in finding.related
    }
    assert not [text for text in sorted(texts) if BARE_CODE.search(CODE.sub("", text))]


def test_an_operator_is_called_what_the_user_wrote() -> None:
    program = (
        "import torch\nw = torch.ones(3, requires_grad=True)\nloss = ({}).float().sum()\nloss.backward()\n"
    )
    for code, name in (("w > 0.5", "w > 0.5"), ("torch.gt(w, 0.5)", "gt")):
        [finding] = analyze(Source("compared.py", program.format(code)), Settings()).findings
        assert finding.code == "GS205"
        assert finding.message.startswith(f"`{name}` has no gradient")


def test_a_step_of_a_trail_is_short() -> None:
    texts = {step.message for finding in SAID for step in finding.related}
    assert not [text for text in sorted(texts) if len(text) > LONGEST_RELATED]


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_a_page_is_written_in_sentences(rule: object) -> None:
    page = getattr(rule, "page", "")
    wrong = [
        text
        for text in paragraphs(page)
        if not re.match(r"[A-Z`]", text) or not text.endswith((".", ":", "?")) or riddles(text)
    ]
    assert not wrong


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_an_advice_is_an_imperative_without_a_full_stop(rule: object) -> None:
    advice = getattr(rule, "advice", "")
    assert not advice or (re.match(r"[a-z]", advice) and not advice.endswith(".") and not riddles(advice))


def test_titles_of_fixes_begin_small_and_hold_no_riddle() -> None:
    wrong = [
        text for path in (ROOT / "server/gradsight/fixes").glob("*.py") for text in draft_titles(path)
        if re.match(r"[A-Z]", text) or riddles(text)
    ]  # fmt: skip
    assert not wrong


def test_settings_and_commands_of_the_editor_hold_no_riddle() -> None:
    manifest = json.loads((ROOT / "package.json").read_text("utf-8"))
    assert not [text for text in manifest_texts(manifest.get("contributes", {})) if riddles(text)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_for_readers_holds_no_riddle(page: str) -> None:
    text = re.sub(r"```.*?```|<!--.*?-->", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    assert not [line for line in text.split("\n") if riddles(re.sub(r"!\[|\]\([^)]*\)", "", line))]


def test_what_the_editor_says_holds_no_riddle() -> None:
    for path in sorted((ROOT / "client/src").rglob("*.ts")):
        said = re.findall(
            r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`', re.sub(r"//.*|/\*.*?\*/", "", path.read_text("utf-8"))
        )
        assert not [
            text for pair in said for text in pair if " " in text and riddles(text.replace("<!DOCTYPE", ""))
        ], path.name


def test_no_sentence_of_the_server_holds_a_riddle() -> None:
    """Also those that no example of the manual shows: of rare cases, of a run, of the command line."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / "server/gradsight").rglob("*.py"))
        if "models" not in path.parts
        for line, text in sentences_in(path)
        if riddles(text)
    ]
    assert not wrong


def test_every_kind_of_fix_says_what_it_changes_where_it_is_unsafe() -> None:
    kinds = {
        kind for path in (ROOT / "server/gradsight/fixes").glob("*.py") for kind in re.findall(
            r'\b(?:Draft|drafts|moves)\(\s*"([a-z-]+)"', path.read_text("utf-8")
        )
    }  # fmt: skip
    assert kinds >= {"out-of-place", "clone-first", "retain-graph", "clear-last"}
    assert kinds <= CHANGES.keys()


@pytest.mark.parametrize(
    "text",
    ["sigmoid keeps its result for backward", "all rounds so far", "made anew", "taken to be called", "write it out of place", "`y` is no leaf", "runs without grad mode",
     "nobody calls backward"],
)  # fmt: skip
def test_riddles_are_noticed(text: str) -> None:
    assert riddles(text)


@pytest.mark.parametrize(
    "text", ["there is no gradient", "it is no longer a leaf", "where there are no findings"]
)
def test_plain_english_is_no_riddle(text: str) -> None:
    assert not riddles(text)


def riddles(text: str) -> list[str]:
    return RIDDLES.findall(CODE.sub("", text))


def paragraphs(page: str) -> Iterator[str]:
    """The prose of a page, paragraph by paragraph."""
    prose = re.sub(r"```.*?```", "\n", page, flags=re.DOTALL)
    for part in re.split(r"\n\s*\n", prose):
        text = " ".join(line for line in part.split("\n") if not line.startswith("#")).strip()
        if text and not text.startswith(("|", "- ", "* ")):
            yield text


def draft_titles(path: Path) -> Iterator[str]:
    """The second argument of every `Draft(...)`, as far as it is written there, and every `title = …`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Draft" and len(node.args) > 1:
            yield from literal(node.args[1])
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "title":
            yield from literal(node.value)


def sentences_in(path: Path) -> Iterator[tuple[int, str]]:
    """What a module says: its texts of three words and more, without what it says about itself."""
    tree = ast.parse(path.read_text("utf-8"))
    own = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in own:
            for text in literal(node):
                if text.count(" ") > 1 and "\\" not in text:
                    yield node.lineno, text


def literal(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)


def manifest_texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if (
                key in ("description", "markdownDescription", "title", "enumDescriptions")
                and not isinstance(inner, dict)
            ) or not isinstance(inner, str):
                yield from manifest_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from manifest_texts(inner)
    elif isinstance(value, str):
        yield value
