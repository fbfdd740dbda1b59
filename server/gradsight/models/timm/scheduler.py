"""Schedules of the learning rate: they step optimizers of no kind."""


class _Schedule:
    def step(self, epoch, metric=None):
        pass

    def step_update(self, num_updates, metric=None):
        pass

    def state_dict(self):
        return {}

    def load_state_dict(self, state_dict):
        pass


class CosineLRScheduler(_Schedule):
    def __init__(self, optimizer, t_initial, lr_min=0.0, **kwargs):
        self.optimizer = optimizer


class StepLRScheduler(_Schedule):
    def __init__(self, optimizer, decay_t, decay_rate=1.0, **kwargs):
        self.optimizer = optimizer


def create_scheduler(args, optimizer, updates_per_epoch=0):
    return CosineLRScheduler(optimizer, 1), 1


def create_scheduler_v2(optimizer, sched="cosine", num_epochs=300, **kwargs):
    return CosineLRScheduler(optimizer, num_epochs), num_epochs
