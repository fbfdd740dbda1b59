"""A transformer encoder of six layers on short sequences."""

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.1, batch_first=True)
model = nn.Sequential(
    nn.Embedding(500, 256), nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), nn.Linear(256, 500)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = torch.randint(0, 500, (8, 128))
for _ in range(4):
    optimizer.zero_grad()
    scores = model(tokens)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
