"""The manual page of a rule as Markdown, and where it is published."""

from __future__ import annotations

from gradsight.model.rule import Rule

MANUAL = "https://github.com/gradsight/gradsight/blob/main/docs/rules"
FAMILIES = {
    "GS1": "Writing in place",
    "GS2": "Cutting the graph",
    "GS3": "Reading gradients",
    "GS4": "Running backward",
    "GS5": "The training loop",
    "GS6": "Modules",
    "GS7": "Custom functions",
}


def page_url(name: str) -> str:
    """The address of the page of the rule with this name."""
    return f"{MANUAL}/{name}.md"


def page_markdown(rule: Rule) -> str:
    """The page under a title with code and name; its first line says what is reported."""
    return f"# {rule.code} {rule.name}\n\n{rule.page.strip()}\n"
