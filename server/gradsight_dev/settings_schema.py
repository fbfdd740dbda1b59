"""Writes the settings of the editor extension into package.json and docs/settings.md, from the server's own model.

Names, types and defaults are read from the dataclasses that the server fills; only what a person reads is written here,
and a field without words, or words without a field, stop the generator.
"""

from __future__ import annotations

import argparse
import json
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from gradsight.model.finding import Severity
from gradsight.model.settings import DERIVED, Settings
from gradsight.rules import ALL
from gradsight.session.configuration import LARGEST
from gradsight.session.options import LONGEST_DEBOUNCE, Options
from gradsight.session.probe_options import ProbeOptions

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "package.json"
PAGE = ROOT / "docs" / "settings.md"
MARK = "<!-- Written by: make settings -->"
SEVERITIES = list(typing.get_args(Severity))
# An editor completes the codes, each with what its rule finds; prefixes and names are allowed as well.
CODES = {
    "type": "string",
    "anyOf": [
        {
            "enum": [rule.code for rule in ALL],
            "markdownEnumDescriptions": [f"{rule.name}: {rule.summary}" for rule in ALL],
        },
        {"pattern": "^[A-Za-z][A-Za-z0-9-]*$"},
    ],
}
SEVERITY_BY_RULE = {
    rule.code: {"type": "string", "enum": SEVERITIES, "markdownDescription": f"{rule.name}: {rule.summary}"}
    for rule in ALL
}

# The editor's own side has settings that the server never sees.
PATH = (
    "A `gradsight` program to use instead of the server in the extension, for example `.venv/bin/gradsight`."
)
TRACE = "Log the messages between the editor and the server."
EXPANDED = "`~`, `${workspaceFolder}`, `${userHome}` and `${env:NAME}` are expanded, and a relative path starts at the folder."


@dataclass(frozen=True, slots=True)
class Words:
    """What a person reads about a setting, and what the schema says beyond its type."""

    text: str
    scope: str = "resource"
    choices: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    is_restricted: bool = False
    """Not read from a workspace that is not trusted."""


WORDS: dict[str, Words] = {
    "enable": Words("Check Python files for places where gradients break."),
    "interpreter": Words(
        "The Python that has your torch: GradSight runs your code in it. It does not need GradSight. Used when no Python "
        "extension has chosen an interpreter. If empty: `.venv` in the folder, else the Python on the `PATH`. "
        f"{EXPANDED}",
        scope="machine-overridable",
        is_restricted=True,
    ),
    "path": Words(f"{PATH} {EXPANDED}", scope="machine-overridable", is_restricted=True),
    "run": Words(
        "When a file is checked.",
        choices={"onType": "While you type, after a short pause.", "onSave": "When the file is saved."},
    ),
    "debounce": Words(
        "Delay after an edit before the file is checked, in milliseconds.",
        extra={"minimum": 0, "maximum": LONGEST_DEBOUNCE},
    ),
    "select": Words(
        "Rules to check: codes (`GS101`), prefixes of codes (`GS1`) or names (`inplace-on-saved`).",
        extra={"items": CODES},
    ),
    "ignore": Words(
        "Rules to ignore: codes (`GS101`), prefixes of codes (`GS1`) or names (`inplace-on-saved`). The longer of two "
        "matching entries in `select` and `ignore` wins.",
        extra={"items": CODES},
    ),
    "severity": Words(
        'Change the severity of rules: `{"GS301": "error"}`. Keys are codes, prefixes of codes or names.',
        extra={
            "properties": SEVERITY_BY_RULE,
            "additionalProperties": {"type": "string", "enum": SEVERITIES},
        },
    ),
    "hints": Words(
        "Also report hints, for example in-place writes that are harmless but could be written plainly."
    ),
    "exclude": Words("Files and folders that are not checked, with patterns as in `.gitignore`."),
    "perFileIgnores": Words(
        'Rules to ignore in some files: `{"tests/": ["GS5"]}`. Keys are patterns as in `.gitignore`, values are lists as in `ignore`.',
        extra={"additionalProperties": {"type": "array", "items": CODES}},
    ),
    "maxMegabytes": Words(
        "Files larger than this are skipped with a notice: checking a file needs several hundred times its size in memory.",
        extra={"exclusiveMinimum": 0, "maximum": LARGEST},
    ),
    "models": Words(
        "A folder of the project with your own models of libraries: Python files that show in which order "
        "a trainer calls backward, step and your code. GradSight reads them and never runs them."
    ),
    "inlayHints": Words(
        "Show next to each tensor whether it is a leaf or which operator made it; after a run also its shape and the norm of its gradient."
    ),
    "codeLens": Words(
        "Show a *Run* link above `__main__`, functions that call backward, functions with a finding, and notebook cells."
    ),
    "scope": Words(
        "Which files the list of problems covers.",
        choices={
            "open": "Open files, and the files they import.",
            "workspace": "All files of the workspace.",
        },
    ),
    "probe.timeout": Words("Stop a run after this many seconds; 0 means never.", extra={"minimum": 0}),
    "probe.memory": Words("Memory limit of a run, in megabytes; 0 means no limit.", extra={"minimum": 0}),
    "probe.steps": Words(
        "Stop a run cleanly after this many optimizer steps (or calls of backward); 0 runs the program to its end.",
        extra={"minimum": 0},
    ),
    "probe.args": Words("Arguments for the program that is run.", is_restricted=True),
    "probe.env": Words("Environment variables for the program that is run.", is_restricted=True),
    "probe.launcher": Words(
        'A command to run the interpreter with, for example `["nice", "-n", "10"]`.', is_restricted=True
    ),
    "trace.server": Words(
        TRACE,
        scope="window",
        choices={"off": "Nothing.", "messages": "Their names.", "verbose": "Their contents too."},
    ),
}
CLIENT_SIDE = {
    "path": {"type": "string", "default": ""},
    "trace.server": {"type": "string", "default": "off"},
}
GROUPS = {
    "General": ("enable", "run", "debounce", "scope", "exclude", "maxMegabytes", "models", "path", "trace.server"),
    "Rules": ("select", "ignore", "perFileIgnores", "severity", "hints"),
    "Editor": ("inlayHints", "codeLens"),
    "Running code": (
        "interpreter", "probe.timeout", "probe.memory", "probe.steps", "probe.args", "probe.env", "probe.launcher",
    ),
}  # fmt: skip
"""The groups of the settings, in the order in which an editor shows them."""
# Set by the editor's client, not by the user.
NOT_SETTINGS = frozenset({"probe.allowed"})


def main() -> int:
    """Write both files, or with --check say which of them is stale."""
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.settings_schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    is_check = parser.parse_args().check
    stale = []
    for path, text in ((MANIFEST, manifest()), (PAGE, page())):
        if not path.exists() or path.read_text() != text:
            stale.append(path.name)
            if not is_check:
                path.write_text(text)
    if is_check and stale:
        print(f"stale: {', '.join(stale)}")
        return 1
    return 0


def manifest() -> str:
    """package.json with the settings as they should be."""
    table = json.loads(MANIFEST.read_text())
    declared = schema()
    table["contributes"]["configuration"] = [
        {
            "title": title,
            "order": place,
            "properties": {
                f"gradsight.{name}": {"order": number, **declared[f"gradsight.{name}"]}
                for number, name in enumerate(names)
            },
        }
        for place, (title, names) in enumerate(GROUPS.items())
    ]
    restricted = [f"gradsight.{name}" for name in schema_names() if WORDS[name].is_restricted]
    table["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = restricted
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """The settings as VS Code wants them declared."""
    kinds = {**dict(model_settings()), **CLIENT_SIDE}
    declared = {}
    for name in schema_names():
        words = WORDS[name]
        choices = (
            {"enum": list(words.choices), "markdownEnumDescriptions": list(words.choices.values())}
            if words.choices
            else {}
        )
        declared[f"gradsight.{name}"] = {
            **kinds[name],
            **choices,
            **words.extra,
            "scope": words.scope,
            "markdownDescription": words.text,
        }
    return declared


def schema_names() -> list[str]:
    """The settings in reading order; raises when words and model do not fit."""
    known = {name for name, _ in model_settings()} | set(CLIENT_SIDE)
    grouped = [name for names in GROUPS.values() for name in names]
    if known != set(WORDS) or sorted(grouped) != sorted(WORDS):
        raise SystemExit(f"settings without words, or words without a setting: {sorted(known ^ set(WORDS))}")
    return list(WORDS)


def model_settings() -> Iterator[tuple[str, dict[str, Any]]]:
    """The settings that the server reads, with type and default, under the names that users write."""
    for each in fields(Options):
        if each.name not in ("checking", "probe"):
            yield _written(each.name), _kind(each, Options)
    for each in fields(Settings):
        if each.name not in DERIVED:
            yield _written(each.name), _kind(each, Settings)
    for each in fields(ProbeOptions):
        name = each.name if each.name == "interpreter" else f"probe.{each.name}"
        if name not in NOT_SETTINGS:
            yield name, _kind(each, ProbeOptions)


def _kind(of: Field[Any], owner: type) -> dict[str, Any]:
    """The JSON schema of a field and its default."""
    hint = typing.get_type_hints(owner)[of.name]
    origin = typing.get_origin(hint)
    default: Any = of.default if of.default_factory is MISSING else of.default_factory()
    if origin is tuple:
        return {"type": "array", "items": {"type": "string"}, "default": list(default)}
    if origin is typing.Literal:
        return {"type": "string", "default": default}
    if hint is bool:
        return {"type": "boolean", "default": default}
    if hint is int:
        return {"type": "integer", "default": default}
    if hint is float:
        return {"type": "number", "default": int(default) if default == int(default) else default}
    if hint is str:
        return {"type": "string", "default": default}
    return {"type": "object", "additionalProperties": {"type": "string"}, "default": dict(default)}


def _written(name: str) -> str:
    """`inlay_hints` as an editor writes it: `inlayHints`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def page() -> str:
    """docs/settings.md."""
    in_project = {_written(each.name) for each in fields(Settings)}
    rows = []
    for name, declared in schema().items():
        default = json.dumps(declared["default"])
        short = name.removeprefix("gradsight.")
        choices = "".join(f"<br>`{key}`: {text}" for key, text in WORDS[short].choices.items())
        text = (declared["markdownDescription"] + choices).replace("|", "\\|")
        rows.append(f"| `{name}` | `{default}` | {'yes' if short in in_project else ''} | {text} |")
    return PAGE_TEXT.replace("ROWS", "\n".join(rows)).replace("MARK", MARK)


PAGE_TEXT = """MARK
# Settings

Everything works without settings. They can be given in two places:

- in the project, under `[tool.gradsight]` of `pyproject.toml`: they apply to everybody, in every editor and on the
  command line;
- in the editor, for one person or one folder.

**Which one wins.** An option of the command line overrides `[tool.gradsight]`, and that overrides the editor, so that
your editor shows what continuous integration will report. The editor fills in what the project leaves open. The nearest
`pyproject.toml` above a file that has the section is used; sections are not merged.
A key or value that is not understood is reported once, and the default is used instead.

```toml
[tool.gradsight]
select = ["GS"]
ignore = ["softmax-before-loss"]
severity = { GS302 = "error" }
exclude = ["third_party/"]
per-file-ignores = { "tests/" = ["GS5"] }
models = "gradsight_models"
```

| setting | default | in `pyproject.toml` | |
| --- | --- | --- | --- |
ROWS

Other editors send the same names as the section `gradsight`, with a table for `probe`: see [editors](editors.md).

In a workspace that is not trusted, VS Code reads `gradsight.interpreter`, `gradsight.path` and the arguments,
variables and launcher of the probe from your own settings only, and nothing is run.
"""


if __name__ == "__main__":
    raise SystemExit(main())
