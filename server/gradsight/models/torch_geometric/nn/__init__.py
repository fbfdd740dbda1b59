"""`MessagePassing`: `propagate` gathers along the edges, calls `message`, aggregates, and calls `update`."""

import torch
from torch import nn


class MessagePassing(nn.Module):
    def __init__(self, aggr="sum", *, flow="source_to_target", node_dim=-2, **options):
        super().__init__()
        self.aggr = aggr
        self.flow = flow
        self.node_dim = node_dim

    def propagate(self, edge_index, size=None, **kwargs):
        source, target = edge_index[0], edge_index[1]
        gathered = dict(kwargs)
        for name, value in kwargs.items():
            if isinstance(value, (tuple, list)):
                gathered[name + "_j"] = value[0].index_select(0, source)
                gathered[name + "_i"] = value[1].index_select(0, target)
            elif isinstance(value, torch.Tensor):
                gathered[name + "_j"] = value.index_select(0, source)
                gathered[name + "_i"] = value.index_select(0, target)
        messages = self.message(**gathered)
        return self.update(self.aggregate(messages, target))

    def message(self, x_j):
        return x_j

    def aggregate(self, inputs, index, ptr=None, dim_size=None):
        return torch.zeros_like(inputs).index_add(0, index, inputs)

    def update(self, inputs):
        return inputs


class _Convolution(nn.Module):
    """A layer over a graph: what it returns depends on its parameters and on the features of the nodes."""

    def __init__(self, in_channels, out_channels, *args, **kwargs):
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def reset_parameters(self):
        pass

    def forward(self, x, edge_index, *args, **kwargs):
        return self.lin(x).index_select(0, edge_index[0])


GCNConv = SAGEConv = GATConv = GATv2Conv = GraphConv = TransformerConv = ChebConv = TAGConv = SGConv = (
    _Convolution
)


def global_mean_pool(x, batch, size=None):
    return x.mean(0, keepdim=True)


def global_add_pool(x, batch, size=None):
    return x.sum(0, keepdim=True)


def global_max_pool(x, batch, size=None):
    return x.amax(0, keepdim=True)
