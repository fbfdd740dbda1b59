"""One round of message passing."""

import torch
from recorder import log
from torch_geometric.nn import MessagePassing


class Layer(MessagePassing):
    def __init__(self):
        super().__init__(aggr="add")
        self.lin = torch.nn.Linear(2, 2)

    def forward(self, x, edge_index):
        log("forward")
        return self.propagate(edge_index, x=self.lin(x))

    def message(self, x, x_i, x_j):
        log("message")
        return x_j

    def aggregate(self, inputs, index):
        log("aggregate")
        return super().aggregate(inputs, index)

    def update(self, inputs):
        log("update")
        return inputs


def main():
    layer = Layer()
    layer(torch.ones(3, 2), torch.tensor([[0, 1, 2], [1, 2, 0]])).sum().backward()
