"""Words in names, and what they suggest: the one place where the name of a thing counts.

A name decides nothing that the machine knows.  It breaks ties where what is done to a value leaves its role open, and it
tells what a program intends: a copy, a target, a function that leads out of training.  The manual prints this table.
"""

from __future__ import annotations

import re

from gradsight.agent.copy_names import MEANT_AS_COPY

NAMES: dict[str, str] = {
    "module": r"model|net(work)?s?(_?[a-z]+)?$|module|generator|discriminator|encoder|decoder|actor|critic|policy|backbone"
    r"|student|classifier|q_?net|unet|transformer|^(self\.)?[GD]$|^(self\.)?net[A-Z]",
    "optimizer": r"optim|(^|[._])opt([._A-Z]|$|\d)|opt$",
    "scaler": r"scaler",
    "scaling": r"backward|scal|amp|fp16|mixed",
    "scheduler": r"sched|warmup",
    "layer": r"attn|attention|layer|block|module",
    "function": r"act|activ|drop|pool|loss|criterion|fn$|func|forward|hook|callback|metric|scheduler|sampler|get|rearrange",
    "source": r"loader|data|batch|buffer|replay|(^|[._])envs?$|(^|_)dl$|(^|_)iter(ator)?$",
    "holder of data": r"(data|dataset|datasets|loader|batch)$",
    "constant": r"target|label|(^|_)masks?$|ind(ex|ices)|_ids?$|^ids$|^batch$|^ptr$|counts?$|lengths?$|(^|_)(seq)?lens?$|^y$|^y_|true|^gt|ground|rewards?$|dones?$|(^|_)anchors$"
    r"|rotary|rope|freqs|(^|_)(cos|sin)($|_)|scale|position|timestep|sigma|size|shape",
    "places": r"(^|_)(ind(ex|ices)|idxs?|ids?|perm)$",
    "settings": r"(^|[._])(args|argv|configs?|cfg|conf|hparams|hp|hps|options|settings|flags)$",
    "class of settings": r"(config|configuration|args|arguments|settings|options|hparams)$",
    "number": r"(^|_)(rate|ratio|eps|epsilon|momentum|lr|factor|dropout|prob|p|dim|axis|step|steps|coeff?s?|coefficient)$"
    r"|^(lam|lambd|lambda|lmbda|lamda)(_|\d|$)",
    "model": r"^(model|net|network|policy|classifier)(_fn)?$",
    "whole model": r"(model|net|network)$",
    "follower": r"target|teacher|(^|[._])ema($|_)|frozen|(^|[._])ref($|_)|reference|(^|[._])old($|_)|momentum_|_momentum$|averaged?",
    "maker": r"(^|_)(class|cls|type|factory|builder|constructor)$",
    "wrapper": r"parallel|^ddp$|fsdp|shard|compile|script|wrap$|prepare_model|prepare_ddp|convert_sync_batchnorm",
    "loss": r"loss|criterion|objective|penalty",
    "copy": MEANT_AS_COPY,
    "target": r"target|teacher|bootstrap|bellman|expected|goal|(^|_)returns?$",
    "weight of a loss": r"adv|td_error|delta|return|reward|baseline",
    "run without gradients": r"predict|infer|eval|valid|test|generat|sampl|score|metric|embed|encode",
    "inference": r"compress|beam|search|penaliz|(^|_)nms|greedy|generate|(^|_)sample|predict|infer|evaluat|metric|visual|plot"
    r"|export",
    "answer of a model": r"(^|_)(beam|generate|greedy|infer|inference|predict|search|evaluate|export)(_|$)",
    "preparation of weights": r"init|reset|load|calib|prune|quant",
    "way out of training": r"predict|generat|infer|sampl|eval|visual|plot|export|log|metric|decode|save|summary|post_?process"
    r"|round|sort|assign|match|index|stat|mask|get_|resize|interpolat|compress|beam|search|array|nms",
    "freezes": r"fr(ee|o)ze|requires_?grad|deactivate|disable_?grad|stop_?grad",
    "thaws": r"un_?freeze|requires_?grad|thaw|enable_?grad",
    "clears": r"zero|step|optim|clear|reset",
    "keeps gradients": r"cache|hidden|state|memory|head|classifier|hook",
    "watcher": r"^(log|sav(e|ing)|eval|valid(at)?|val|test|print|summar|plot|watch|count|write|visuali|export|report|record|monitor"
    r"|dump|descri|display|show|benchmark|profil|render|draw|info$|warn|debug|scalars?$|histogram)",
    "trainer": r"^(train|fit|learn|update|backward)",
    "log probability": r"log_?p",
    "expects an error": r"raises|suppress",
    "step of training": r"^step$",
    "counts steps": r"prog|bar$|timer|meter|count|track|prof|log|callback|hook|env",
}
"""What a name with such words in it suggests."""


class Patterns(dict[str, re.Pattern[str]]):
    """The words of each hint, compiled when they are first asked for: a run needs few of them."""

    def __missing__(self, hint: str) -> re.Pattern[str]:
        compiled = self[hint] = re.compile(NAMES[hint])
        return compiled


BY_NAME = Patterns()


def suggests(hint: str, name: str) -> bool:
    """Whether a name has words of a hint; large and small letters are alike."""
    return BY_NAME[hint].search(name.lower()) is not None
