"""A script being written: what a kind of hazard puts in, and the many forms that users give to the rest.

A *block* is text with marks.  Names that live outside the training loop are its *state*: they are globals, arguments or
attributes, as the form of the loop wants it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gradsight_dev.fuzz.families.marked import (
    caused,
    causes_of,
    indented,
    joined,
    lines_of,
    unmarked,
    versions,
)

MAIN = "train.py"
OTHER = "helpers.py"
LOOPS = ("script", "script", "function", "main", "trainer", "stepper")
FORMS = ("inline", "inline", "inline", "function", "function", "method", "nested", "elsewhere")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a script: its files, and the causing lines of each."""

    texts: dict[str, str]
    causes: dict[str, frozenset[int]]


@dataclass(slots=True)
class Script:
    """Blocks by their place.  `before` and `after` stand around the loop in its own scope."""

    rng: random.Random
    plain: bool = False
    """Nothing is disguised."""
    imports: set[str] = field(default_factory=set)
    definitions: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    header: str = "for step in range(3):"
    rounds: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    loops: Sequence[str] = LOOPS
    forms: Sequence[str] = FORMS
    imported: set[str] = field(default_factory=set)

    def make(self, name: str, block: str) -> None:
        """Something outside the loop that it uses."""
        self.setup.append(block)
        self.state += [one for one in name.split(", ") if one not in self.state]

    def define(self, block: str, name: str = "") -> None:
        """A definition, perhaps in the other file if it is imported by name."""
        if name and "elsewhere" in self.forms and not self.plain and self.rng.random() < 0.2:
            self.elsewhere.append(block)
            self.imported.add(name)
        else:
            self.definitions.append(block)

    def through(self, name: str, arguments: str, body: str, results: str = "") -> str:
        """The block that does the same as the body, which stands here or in a function, a method or another file."""
        form = self.forms[0] if self.plain else self.rng.choice(self.forms)
        if form == "inline":
            return body
        inner = joined(body, f"return {results}" if results else "")
        left = f"{results} = " if results else ""
        if form == "method":
            first = f"self, {arguments}" if arguments else "self"
            kind = self.rng.choice(("", "@staticmethod"))
            head = f"{kind}\ndef {name}({arguments}):" if kind else f"def {name}({first}):"
            title = f"{name.title().replace('_', '')}Tools"
            self.definitions.append(joined(f"class {title}:", indented(joined(head, indented(inner)))))
            self.definitions.append(f"{name.upper()} = {title}()")
            return f"{left}{name.upper()}.{name}({arguments})"
        defined = joined(f"def {name}({arguments}):", indented(inner))
        if form == "elsewhere":
            self.elsewhere.append(defined)
            if self.rng.random() < 0.5:
                self.imported.add(name)
                return caused(f"{left}{name}({arguments})", body)
            self.imports.add("import helpers")
            return caused(f"{left}helpers.{name}({arguments})", body)
        self.definitions.append(defined)
        if form == "nested":
            outer = f"return {name}({arguments})" if results else f"{name}({arguments})"
            self.definitions.append(joined(f"def do_{name}({arguments}):", indented(outer)))
            return f"{left}do_{name}({arguments})"
        return f"{left}{name}({arguments})"

    def versions(self) -> tuple[Version, Version]:
        """The hazardous version and its twin."""
        main, other = self._main(), self._other()
        style = 0 if self.plain else self.rng.randrange(len(STYLES))
        hazard_main, twin_main = versions(main)
        hazard_other, twin_other = versions(other)
        return _version(hazard_main, hazard_other, style), _version(twin_main, twin_other, style)

    def _other(self) -> str:
        shared = sorted(one for one in self.imports if "helpers" not in one)
        return joined(*shared, *self.elsewhere) if self.elsewhere else ""

    def _main(self) -> str:
        imports = sorted(self.imports)
        if self.imported:
            imports.append(f"from helpers import {', '.join(sorted(self.imported))}")
        setup, loop = joined(*self.setup), joined(self.header, indented(joined(*self.rounds)))
        loop = joined(*self.before, loop, *self.after)
        allowed = [one for one in self.loops if one != "stepper" or not (self.before or self.after)]
        form = "script" if self.plain else self.rng.choice(allowed)
        return joined(*imports, *self.definitions, *_FORMED[form](self, setup, loop))

    def as_script(self, setup: str, loop: str) -> list[str]:
        return [setup, "torch.manual_seed(1)", loop]

    def as_function(self, setup: str, loop: str) -> list[str]:
        names = ", ".join(self.state)
        return [f"def train({names}):", indented(loop), setup, "torch.manual_seed(1)", f"train({names})"]

    def as_main(self, setup: str, loop: str) -> list[str]:
        inner = joined(setup, "torch.manual_seed(1)", loop)
        return ["def main():", indented(inner), 'if __name__ == "__main__":', "    main()"]

    def as_trainer(self, setup: str, loop: str) -> list[str]:
        names = ", ".join(self.state)
        held = "\n".join(f"self.{name} = {name}" for name in self.state)
        inside = _on_self(loop, self.state)
        made = [
            "class Trainer:",
            f"    def __init__(self, {names}):",
            indented(held, 2),
            "    def fit(self):",
        ]
        return [*made, indented(inside, 2), setup, "torch.manual_seed(1)", f"Trainer({names}).fit()"]

    def as_stepper(self, setup: str, loop: str) -> list[str]:
        header, *inside = lines_of(loop)
        counted = re.findall(r"\w+", header.split(" in ")[0])[1:]
        names = ", ".join([*self.state, *counted])
        inner = "\n".join(line[:2] + line[6:] if line.startswith("@") else line[4:] for line in inside)
        step = [f"def train_step({names}):", indented(inner)]
        return [*step, setup, "torch.manual_seed(1)", header, f"    train_step({names})"]


_FORMED = {
    "script": Script.as_script,
    "function": Script.as_function,
    "main": Script.as_main,
    "trainer": Script.as_trainer,
    "stepper": Script.as_stepper,
}

Style = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
_NAME = r"(?<![\w.\"'])"
STYLES: tuple[Style, ...] = (
    (("import torch", "from torch import nn", "import torch.nn.functional as F"), ()),
    (("import torch", "import torch.nn as nn"), ((_NAME + r"F\.", "nn.functional."),)),
    (
        ("import torch as th", "from torch import nn", "from torch.nn import functional as F"),
        ((_NAME + r"torch\.", "th."),),
    ),
    (
        ("import torch",),
        ((_NAME + r"nn\.", "torch.nn."), (_NAME + r"F\.", "torch.nn.functional.")),
    ),
    (
        (
            "import torch",
            "import torch.nn as nn",
            "import torch.nn.functional as F",
            "import torch.optim as optim",
        ),
        ((_NAME + r"torch\.optim\.", "optim."),),
    ),
    (
        (
            "import torch",
            "import torch.nn as nn",
            "import torch.nn.functional as F",
            "from torch.optim import SGD, Adam, AdamW, RMSprop, LBFGS",
        ),
        ((_NAME + r"torch\.optim\.(SGD|Adam|AdamW|RMSprop|LBFGS)\(", r"\1("),),
    ),
)


def _version(main: list[str], other: list[str], style: int) -> Version:
    texts, causes = {}, {}
    for name, lines in ((MAIN, main), (OTHER, other)):
        if not lines:
            continue
        header, renamed = STYLES[style]
        whole = [*header, *(_in_style(line, renamed) for line in lines)]
        texts[name], causes[name] = unmarked(whole), causes_of(whole)
    return Version(texts, causes)


def _in_style(line: str, renamed: Sequence[tuple[str, str]]) -> str:
    if line.startswith(("import ", "from ")):
        return line
    for pattern, spelled in renamed:
        line = re.sub(pattern, spelled, line)
    return line


def _on_self(block: str, names: Sequence[str]) -> str:
    """The block in a method: the names of the state are attributes."""
    return re.sub(rf"(?<![\w.\"'])({'|'.join(names)})(?![\w\"'])", r"self.\1", block) if names else block
