"""`DataLoaders`: one loader for training, one for validation."""


class DataLoaders:
    def __init__(self, *loaders, path=".", device=None):
        self.train = loaders[0]
        self.valid = loaders[1]
        self.device = device
