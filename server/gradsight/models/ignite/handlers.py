"""Handlers that an engine calls: schedules set numbers of an optimizer, the others watch and save."""


class ParamScheduler:
    def __init__(self, optimizer, param_name, *values, **options):
        self.optimizer = optimizer
        self.param_name = param_name

    def __call__(self, engine, name=None):
        pass

    def get_param(self):
        return self.optimizer.param_groups[0][self.param_name]


class PiecewiseLinear(ParamScheduler):
    pass


class LinearCyclicalScheduler(ParamScheduler):
    pass


class CosineAnnealingScheduler(ParamScheduler):
    pass


class LRScheduler:
    def __init__(self, lr_scheduler, save_history=False, use_legacy=False):
        self.lr_scheduler = lr_scheduler

    def __call__(self, engine, name=None):
        self.lr_scheduler.step()


class ConcatScheduler:
    def __init__(self, schedulers, durations, save_history=False):
        self.schedulers = schedulers

    def __call__(self, engine, name=None):
        pass


class ParamGroupScheduler(ConcatScheduler):
    def __init__(self, schedulers, names=None, save_history=False):
        self.schedulers = schedulers


def create_lr_scheduler_with_warmup(lr_scheduler, warmup_start_value, warmup_duration, **options):
    return ConcatScheduler([lr_scheduler], [])


class Checkpoint:
    def __init__(self, to_save, save_handler, *settings, **options):
        pass

    def __call__(self, engine):
        pass


class ModelCheckpoint:
    def __init__(self, dirname, filename_prefix="", *settings, **options):
        pass

    def __call__(self, engine, to_save):
        pass


class EarlyStopping:
    def __init__(self, patience, score_function, trainer, *settings, **options):
        pass

    def __call__(self, engine):
        pass


class TerminateOnNan:
    def __init__(self, output_transform=None):
        pass

    def __call__(self, engine):
        pass


class ProgressBar:
    def __init__(self, **options):
        pass

    def attach(self, engine, *names, **options):
        pass

    def log_message(self, message):
        pass


class OutputHandler:
    def __init__(self, tag, *settings, **options):
        pass

    def __call__(self, engine, logger, event_name):
        pass


class TensorboardLogger:
    def __init__(self, *settings, **options):
        pass

    def attach(self, engine, log_handler, event_name, *values, **options):
        pass

    def attach_output_handler(self, engine, event_name, *values, **options):
        pass

    def attach_opt_params_handler(self, engine, event_name, *values, **options):
        pass

    def close(self):
        pass


WandBLogger = MLflowLogger = ClearMLLogger = NeptuneLogger = VisdomLogger = TensorboardLogger


class OptimizerParamsHandler:
    def __init__(self, optimizer, param_name="lr", tag=None, sync=None):
        pass

    def __call__(self, engine, logger, event_name):
        pass


def global_step_from_engine(engine, custom_event_name=None):
    return lambda other, event_name: 0
