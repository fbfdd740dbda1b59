"""torchvision: networks with the parts that programs index, replace and freeze; operators, pictures, datasets and transforms."""
