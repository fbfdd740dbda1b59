"""`python -m gradsight_dev.traits`: measures traits and layers on torch and writes their file; `--check` says if it is fresh."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradsight.ops.traits import TRAITS, WRITTEN_BY


def main(arguments: list[str]) -> int:
    """Write the file, or compare it with a fresh one."""
    path, text = Path(TRAITS), measured_text()
    if "--check" not in arguments:
        path.write_text(text, encoding="utf-8")
        return 0
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in list(difflib.unified_diff(old.splitlines(), text.splitlines(), "committed", "fresh", n=0))[
        :20
    ]:
        print(line[:300])
    if old != text:
        print(f"{path.name} is stale; write it anew with: {WRITTEN_BY}")
    return 0 if old == text else 1


def measured_text() -> str:
    """The whole file, from the torch of this interpreter."""
    import torch

    from gradsight.agent.facts.layer_tensors import survey_layers
    from gradsight.agent.facts.makers import survey_makers
    from gradsight.agent.facts.modules import database_constructions
    from gradsight.agent.facts.own_modules import own_constructions
    from gradsight.agent.facts.own_samples import own_calls
    from gradsight.agent.facts.torch_samples import TorchSamples, import_databases
    from gradsight.agent.facts.traits import survey_traits
    from gradsight.agent.facts.whole_arguments import survey_whole_arguments

    torch.set_num_threads(1)
    op_db, module_db, trouble = import_databases()
    if trouble:
        raise SystemExit(trouble)
    constructions = own_constructions()
    for name, further in database_constructions(module_db).items():
        constructions.setdefault(name, []).extend(further)
    samples, own = TorchSamples(op_db), own_calls()
    traits = {
        **survey_traits(samples, own, constructions),
        **survey_whole_arguments(samples, own),
        **survey_makers(),
    }
    header = json.dumps(
        {"torch": torch.__version__.split("+")[0], "written by": WRITTEN_BY}, separators=(",", ":")
    )
    lines = [f"{trait}\t{' '.join(names)}" for trait, names in sorted(traits.items())]
    lines += [layer_line(layer) for layer in survey_layers(constructions)]
    return "\n".join([header, *lines]) + "\n"


def layer_line(layer: Mapping[str, Any]) -> str:
    """One layer as the reader has it."""
    defaults = layer["defaults"]
    options = ", ".join(f"{name}={defaults[name]}" if name in defaults else name for name in layer["options"])
    tensors = "; ".join(
        ("~" if kind == "buffer" else "")
        + name
        + (" ?" if sizes is None else " " + ",".join(sizes) if sizes else "")
        + (" if " + " ".join(needs) if needs else "")
        for name, kind, sizes, needs in layer["tensors"]
    )
    return f"+{layer['name']}\t{options}\t{'...' if layer.get('varies') else tensors}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
