"""Accelerate: the user writes the loop; what is prepared behaves as before, and the accelerator calls backward."""

from contextlib import contextmanager

import torch
from torch import nn


def skip_first_batches(dataloader, num_batches=0):
    return dataloader


class Accelerator:
    def __init__(self, *, gradient_accumulation_steps=1, **options):
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.sync_gradients = True
        self.optimizer_step_was_skipped = False
        self.device = torch.device("cpu")
        self.is_main_process = True
        self.is_local_main_process = True
        self.is_last_process = True
        self.num_processes = 1
        self.process_index = 0
        self.local_process_index = 0

    def prepare(self, *objects, device_placement=None):
        return objects if len(objects) > 1 else objects[0]

    def prepare_model(self, model, device_placement=None, evaluation_mode=False):
        return model

    def prepare_optimizer(self, optimizer, device_placement=None):
        return optimizer

    def prepare_data_loader(self, data_loader, device_placement=None, slice_fn_for_dispatch=None):
        return data_loader

    def prepare_scheduler(self, scheduler):
        return scheduler

    def backward(self, loss, **options):
        steps = self.gradient_accumulation_steps
        (loss if steps == 1 else loss / steps).backward(**options)

    def clip_grad_norm_(self, parameters, max_norm, norm_type=2):
        return nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)

    def clip_grad_value_(self, parameters, clip_value):
        nn.utils.clip_grad_value_(parameters, clip_value)

    def unscale_gradients(self, optimizer=None):
        pass

    @contextmanager
    def accumulate(self, *models):
        yield

    @contextmanager
    def no_sync(self, model):
        yield

    @contextmanager
    def autocast(self, autocast_handler=None):
        yield

    @contextmanager
    def main_process_first(self):
        yield

    @contextmanager
    def local_main_process_first(self):
        yield

    @contextmanager
    def join_uneven_inputs(self, joinables, even_batches=None):
        yield

    @contextmanager
    def profile(self, profile_handler=None):
        yield

    def unwrap_model(self, model, keep_fp32_wrapper=True, keep_torch_compile=True):
        return model

    def gather(self, tensor):
        return tensor

    def gather_for_metrics(self, input_data, use_gather_object=False):
        return input_data

    def reduce(self, tensor, reduction="sum", scale=1.0):
        return tensor

    def pad_across_processes(self, tensor, dim=0, pad_index=0, pad_first=False):
        return tensor

    def get_state_dict(self, model, unwrap=True):
        return model.state_dict()

    def on_main_process(self, function=None):
        return function

    def on_local_main_process(self, function=None):
        return function

    def print(self, *values, **options):
        pass

    def log(self, values, step=None, log_kwargs=None):
        pass

    def init_trackers(self, project_name, config=None, init_kwargs=None):
        pass

    def end_training(self):
        pass

    def wait_for_everyone(self):
        pass

    def register_for_checkpointing(self, *objects):
        pass

    def save(self, obj, f, safe_serialization=False):
        pass

    def save_model(self, model, save_directory, **options):
        pass

    def save_state(self, output_dir=None, **options):
        pass

    def load_state(self, input_dir=None, **options):
        pass

    def free_memory(self, *objects):
        return objects

    def clear(self, *objects):
        return objects

    def skip_first_batches(self, dataloader, num_batches=0):
        return dataloader
