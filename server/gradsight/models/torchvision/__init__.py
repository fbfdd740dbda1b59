"""torchvision: its models are modules with parameters; datasets and transforms bring no graph."""
