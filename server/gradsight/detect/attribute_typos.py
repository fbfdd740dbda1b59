"""Attributes of tensors and modules that are spelled like one that torch knows."""

from __future__ import annotations

from difflib import SequenceMatcher

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.library_objects import Optimizer
from gradsight.model.trace import AttributeInvented, AttributeSet
from gradsight.model.values import MISSING, Instance

TYPOS = {
    "require_grad": "requires_grad", "requires_grads": "requires_grad", "require_grads": "requires_grad", "required_grad": "requires_grad",
    "require_gradient": "requires_grad", "requires_gradient": "requires_grad", "requiers_grad": "requires_grad", "gradient": "grad", "grads": "grad",
}  # fmt: skip


class AttributeTypos:
    """Setting such an attribute does nothing."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_attribute_set(self, fact: AttributeSet) -> None:
        """`module.requires_grad = False`: only parameters have the flag, unless the class of the module defines one."""
        is_flag = fact.name == "requires_grad"
        if not isinstance(fact.value, bool) or not (is_flag or meant_by(fact.name) == "requires_grad"):
            return
        if self.path.frame.receiver is fact.owner or not (is_flag or fact.old is MISSING):
            # A flag of its own, that the module reads itself.
            return
        if isinstance(fact.owner, Instance) and fact.owner.cls.find(fact.name)[0] is not MISSING:
            return
        site = self.path.site(fact.node)
        self.claims.add(
            "attribute-typo", site, [], name=fact.name, meant="requires_grad_()",
            target=self.path.text_of_target(site), of_module=is_flag,
        )  # fmt: skip

    def on_attribute_invented(self, fact: AttributeInvented) -> None:
        name, site = fact.name, fact.site
        if isinstance(fact.owner, Optimizer):
            meant = f'param_groups[i]["{name}"]'
            self.claims.add("attribute-typo", site, [], name=name, meant=meant, target="the optimizer")
            return
        if name.endswith("_") and self.path.table.find(f"Tensor.{name}") is not None:
            # `weight.copy_ = values`: a method of this tensor object is overwritten, and nothing is written.
            self.claims.add(
                "attribute-typo",
                site,
                self.path.call_steps(site),
                name=name,
                meant=f"{name}(…)",
                target=self.path.text_of_target(site),
                of_method=True,
            )
            return
        if meant := meant_by(name):
            self.claims.add(
                "attribute-typo", site, [], name=name, meant=meant, target=self.path.text_of_target(site)
            )


def meant_by(name: str) -> str:
    """The attribute of torch that a name was meant for; empty if none is known."""
    return TYPOS.get(name) or ("requires_grad" if is_misspelt(name, "requires_grad") else "")


def is_misspelt(name: str, word: str) -> bool:
    """Whether a name is a long word with two letters confused, left out, doubled or swapped at most; the method of the
    same name, with an underscore, is another word."""
    if name in (word, f"{word}_") or abs(len(name) - len(word)) > 2 or name[:3] != word[:3]:
        return False
    # Two letters of a word confused leave this much of both.
    return SequenceMatcher(None, name, word).ratio() >= (len(word) - 2) / len(word)
