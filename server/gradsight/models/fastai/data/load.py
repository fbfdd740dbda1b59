"""`DataLoader`: batches of what a dataset holds, without graphs."""

from torch.utils import data


class DataLoader(data.DataLoader):
    def __init__(self, dataset=None, bs=None, num_workers=0, **options):
        super().__init__(dataset, batch_size=bs)
