"""Every piece of configuration in the manual is understood by whoever it is for."""

from __future__ import annotations

import json
import re
import shlex
import sys
from typing import Any

import pytest
import yaml

from gradsight.cli import main
from gradsight.session.configuration import settings_from
from gradsight.session.options import options_from
from tests.docs.blocks import Block, blocks
from tests.house.tree import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SERVER = ["gradsight", "server"]
MANIFEST = json.loads((ROOT / "package.json").read_text())
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_toml_is_understood(block: Block) -> None:
    table = tomllib.loads(block.text)
    own = table.get("tool", {}).get("gradsight")
    if own is not None:
        assert settings_from(own)[1] == ()
        return
    server = table["language-server"]["gradsight"]
    assert [server["command"], *server["args"]] == SERVER
    assert options_from(server["config"])[1] == ()


@pytest.mark.parametrize("block", blocks("json", "jsonc"), ids=str)
def test_json_is_understood(block: Block) -> None:
    table = json.loads(block.text)
    names = [name for name in table if name.startswith("gradsight.")]
    known = {name for group in MANIFEST["contributes"]["configuration"] for name in group["properties"]}
    assert [name for name in names if name not in known] == []
    if block.title == "initializationOptions":
        assert options_from(table)[1] == ()
    for options in [*nested(table, "initializationOptions"), *nested(table, "initialization_options")]:
        assert options_from(options)[1] == ()
    if block.page == "docs/editors.md" and block.title != "initializationOptions":
        commands = [
            *nested(table, "command"),
            *([each["path"], *each["arguments"]] for each in nested(table, "binary")),
        ]
        assert commands == [SERVER]


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_is_understood(block: Block) -> None:
    table = yaml.safe_load(block.text)
    for step in nested_steps(table):
        if str(step.get("uses", "")).startswith("gradsight/"):
            assert step["uses"] == f"gradsight/gradsight@v{MANIFEST['version']}"
            assert set(step.get("with", {})) <= set(ACTION["inputs"])
    if isinstance(table, dict) and "repos" in table:
        [repository] = table["repos"]
        assert repository["rev"] == f"v{MANIFEST['version']}"
        assert {hook["id"] for hook in repository["hooks"]} == {hook["id"] for hook in HOOKS}


def test_the_versions_agree() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(MANIFEST['version'])}$", changes, re.MULTILINE)


def test_hooks_call_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for hook in HOOKS:
        program, *arguments = shlex.split(hook["entry"])
        assert program == "gradsight"
        assert main([*arguments, "--help"]) == 0
        capsys.readouterr()


def nested(value: Any, name: str) -> list[Any]:
    """Everything that stands under a name, however deep."""
    if isinstance(value, dict):
        own = [value[name]] if name in value else []
        return own + [found for each in value.values() for found in nested(each, name)]
    if isinstance(value, list):
        return [found for each in value for found in nested(each, name)]
    return []


def nested_steps(value: Any) -> list[dict[str, Any]]:
    """The steps of a workflow, or of a list of steps."""
    if isinstance(value, list):
        return [step for step in value if isinstance(step, dict)]
    return [step for steps in nested(value, "steps") for step in steps]


def test_every_command_of_the_editor_is_in_the_manual() -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    contributed = MANIFEST["contributes"]
    # Where a hover leads is no command that a user calls by its name.
    hidden = {each["command"] for each in contributed["menus"]["commandPalette"] if each["when"] == "false"}
    assert hidden == {"gradsight.ignoreRule", "gradsight.showLine"}
    titles = [each["title"] for each in contributed["commands"] if each["command"] != "gradsight.showLine"]
    assert [title for title in titles if title not in page] == []
