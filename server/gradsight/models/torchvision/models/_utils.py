"""`IntermediateLayerGetter`: the first parts of a network, and what some of them return."""

from torch import nn


class IntermediateLayerGetter(nn.ModuleDict):
    def __init__(self, model, return_layers):
        wanted = dict(return_layers)
        parts = {}
        for name, part in model.named_children():
            if wanted:
                parts[name] = part
            wanted.pop(name, None)
        super().__init__(parts)
        self.return_layers = return_layers

    def forward(self, x):
        out = {}
        for name, part in self.items():
            x = part(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out
